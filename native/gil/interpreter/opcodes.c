#include "gil/interpreter/compat.h"

#ifndef FL_PROBE_REFUSAL

#include <opcode.h>

bool fl_opcode_destroys(unsigned char opcode)
{
    switch (opcode) {
    case POP_TOP:
    case POP_EXCEPT:
    case RETURN_VALUE:
    case DELETE_ATTR:
    case DELETE_DEREF:
    case DELETE_FAST:
    case DELETE_GLOBAL:
    case DELETE_NAME:
    case DELETE_SUBSCR:
    case STORE_ATTR:
    case STORE_ATTR_INSTANCE_VALUE:
    case STORE_ATTR_SLOT:
    case STORE_ATTR_WITH_HINT:
    case STORE_DEREF:
    case STORE_FAST:
    case STORE_GLOBAL:
    case STORE_NAME:
#if PY_VERSION_HEX < 0x030D0000
    case STORE_FAST__LOAD_FAST:
    case STORE_FAST__STORE_FAST:
#else
    case STORE_FAST_LOAD_FAST:
    case STORE_FAST_STORE_FAST:
#endif
#if PY_VERSION_HEX < 0x030C0000
    case STORE_ATTR_ADAPTIVE:
#endif
        return true;
    default:
        return false;
    }
}

bool fl_opcode_calls_python(unsigned char opcode)
{
    switch (opcode) {
    case CALL_PY_EXACT_ARGS:
#if PY_VERSION_HEX >= 0x030D0000
    case CALL_PY_GENERAL:
    case CALL_BOUND_METHOD_GENERAL:
#endif
#if PY_VERSION_HEX >= 0x030C0000
    case CALL_BOUND_METHOD_EXACT_ARGS:
#endif
        return true;
    default:
        return false;
    }
}

#endif
