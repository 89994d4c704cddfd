// The echo server of echo_server.py in Go: a goroutine for each connection, with CPU-bound goroutines beside.
// Settings: {"cpu_threads": N} on the command line.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

const (
	unit  = 50000 // steps, some tens of microseconds
	batch = 16
)

//go:noinline
func countTo(steps int) (x int) {
	for x < steps {
		x += 1 + runtime.NumCPU()>>30 // so that the loop is not computed in advance
	}
	return x
}

// spin computes, and counts the nanoseconds of work that it did as steps.spin does.
func spin(done *int64) {
	for work := int64(0); ; *done = work {
		took, least := [batch]int64{}, int64(1)<<62
		for i := range took {
			begin := time.Now()
			countTo(unit)
			took[i] = int64(time.Since(begin))
			least = min(least, took[i])
		}
		for _, one := range took {
			work += min(one, least*3/2)
		}
	}
}

// counters are integers in a file of memory that other processes may read.
func counters(count int) ([]int64, string) {
	name := []byte("work\x00")
	number, _, failed := syscall.Syscall(319, uintptr(unsafe.Pointer(&name[0])), 0, 0) // memfd_create, x86_64
	check(failed)
	check(syscall.Ftruncate(int(number), int64(8*count)))
	memory, err := syscall.Mmap(int(number), 0, 8*count, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(err)
	return unsafe.Slice((*int64)(unsafe.Pointer(&memory[0])), count),
		fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), number)
}

func check(err error) {
	if number, is := err.(syscall.Errno); err != nil && !(is && number == 0) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(connection net.Conn) {
	defer connection.Close()
	data := make([]byte, 4096)
	for {
		size, err := connection.Read(data)
		if err != nil {
			return
		}
		if _, err := connection.Write(data[:size]); err != nil {
			return
		}
	}
}

func main() {
	var settings struct {
		CPUThreads int `json:"cpu_threads"`
	}
	check(json.Unmarshal([]byte(os.Args[1]), &settings))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		for {
			connection, err := listener.Accept()
			check(err)
			go serve(connection) // net sets TCP_NODELAY
		}
	}()
	facts := map[string]any{"port": listener.Addr().(*net.TCPAddr).Port}
	if settings.CPUThreads > 0 {
		done, path := counters(settings.CPUThreads)
		for i := range done {
			go spin(&done[i])
		}
		facts["work"] = path
	}
	said, err := json.Marshal(facts)
	check(err)
	fmt.Println(string(said))
	io.Copy(io.Discard, os.Stdin)
}
