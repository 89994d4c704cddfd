#include <string.h>

#include "check.h"
#include "gil/trace/crc32.h"
#include "gil/trace/text.h"

static void check_string(const char *string, size_t size, const char *wanted)
{
    fl_text text = {0};
    fl_text_string(&text, string, size);
    CHECK(!text.failed);
    CHECK_EQUAL(text.size, strlen(wanted));
    CHECK(memcmp(text.data, wanted, text.size) == 0);
    fl_text_free(&text);
}

static void test_strings_are_quoted_and_escaped(void)
{
    check_string("plain", 5, "\"plain\"");
    check_string("", 0, "\"\"");
    check_string("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
    check_string("\n\t\x01\x7f", 4, "\"\\u000a\\u0009\\u0001\\u007f\"");
    check_string("a\0b", 3, "\"a\\u0000b\"");
    check_string("</script>", 9, "\"</script>\"");
}

static void test_utf8_is_kept_and_what_is_not_is_replaced(void)
{
    check_string("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8D", 9, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8D\"");
    check_string("\xFFx", 2, "\"\xEF\xBF\xBDx\"");
    check_string("\xC3", 1, "\"\xEF\xBF\xBD\"");                 /* cut short */
    check_string("\xC0\xAF", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\""); /* an overlong form */
    check_string("\xE0\x80\xAF", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    check_string("\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""); /* a surrogate */
    check_string("\xF4\x90\x80\x80", 4,                                          /* beyond Unicode */
                 "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

static void test_members_make_an_object(void)
{
    fl_text text = {0};
    uint64_t numbers[3] = {4, 5, UINT64_MAX};
    fl_text_add(&text, "{\"first\":1");
    fl_text_member(&text, "second", UINT64_MAX);
    fl_text_members(&text, "third", numbers, 3);
    fl_text_members(&text, "none", numbers, 0);
    fl_text_add(&text, "}");
    const char *wanted = "{\"first\":1,\"second\":18446744073709551615,\"third\":[4,5,18446744073709551615],"
                         "\"none\":[]}";
    CHECK_EQUAL(text.size, strlen(wanted));
    CHECK(memcmp(text.data, wanted, text.size) == 0);
    fl_text_clear(&text);
    CHECK_EQUAL(text.size, 0);
    fl_text_free(&text);
}

static void test_text_grows(void)
{
    fl_text text = {0};
    for (int i = 0; i < 100000; i++) {
        fl_text_number(&text, 7);
    }
    CHECK_EQUAL(text.size, 100000);
    CHECK(text.data[99999] == '7');
    fl_text_free(&text);
}

/* The plain definition, a bit at a time. */
static uint32_t slow_crc(const unsigned char *data, size_t size)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        }
    }
    return ~crc;
}

static void test_crc_is_that_of_its_definition(void)
{
    CHECK(fl_crc32(0, "123456789", 9) == 0xCBF43926u); /* the check value of the catalogues */
    CHECK(fl_crc32(0, "", 0) == 0);
    unsigned char data[300];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * 167 + i / 3);
    }
    for (size_t start = 0; start < 9; start++) {
        for (size_t size = 0; size + start <= sizeof data; size += 7) {
            CHECK(fl_crc32(0, data + start, size) == slow_crc(data + start, size));
        }
    }
    CHECK(fl_crc32(fl_crc32(0, data, 101), data + 101, 199) == slow_crc(data, 300));
}

int main(void)
{
    test_strings_are_quoted_and_escaped();
    test_utf8_is_kept_and_what_is_not_is_replaced();
    test_members_make_an_object();
    test_text_grows();
    test_crc_is_that_of_its_definition();
    return 0;
}
