// Stands in for nvidia-smi: a line for each pretend GPU that the container sees, with the columns that --query-gpu names.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The same file that the device plugin reads.
const count = "/var/lib/kubelet/device-plugins/pretend-gpus"

func main() {
	columns := []string{"index", "name", "memory.total", "driver_version"}
	for _, argument := range os.Args[1:] {
		if named, found := strings.CutPrefix(argument, "--query-gpu="); found {
			columns = strings.Split(named, ",")
		}
	}
	number := 1
	if text, err := os.ReadFile(count); err == nil {
		if number, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			fail(fmt.Sprintf("%s: %v", count, err))
		}
	}
	visible := os.Getenv("NVIDIA_VISIBLE_DEVICES")
	for index := range number {
		id := fmt.Sprintf("GPU-pretend-%d", index)
		if visible != "" && visible != "all" && !strings.Contains(","+visible+",", ","+id+",") {
			continue
		}
		values := map[string]string{
			"index": strconv.Itoa(index), "name": "pretend GPU", "memory.total": "16384 MiB", "driver_version": "0.0", "uuid": id,
		}
		line := []string{}
		for _, column := range columns {
			value, known := values[column]
			if !known {
				fail(fmt.Sprintf("field %q is not a valid field to query", column))
			}
			line = append(line, value)
		}
		fmt.Println(strings.Join(line, ", "))
	}
}

func fail(reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(2)
}
