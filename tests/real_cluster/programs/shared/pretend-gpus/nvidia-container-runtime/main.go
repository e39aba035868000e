// Stands in for NVIDIA's container runtime: calls runc, and a container that is to see GPUs gets nvidia-smi and the number of
// pretend GPUs mounted, as the original mounts the driver's programs.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	program = "/usr/bin/nvidia-smi"
	count   = "/var/lib/kubelet/device-plugins/pretend-gpus"
)

func main() {
	if bundle := bundleToCreate(os.Args[1:]); bundle != "" {
		if err := addMounts(filepath.Join(bundle, "config.json")); err != nil {
			fail(err)
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(runc, append([]string{runc}, os.Args[1:]...), os.Environ()))
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "nvidia-container-runtime: %v\n", err)
	os.Exit(1)
}

// The directory of the container that this call creates, or nothing if it does something else.
func bundleToCreate(arguments []string) string {
	creates, bundle := false, "."
	for index, word := range arguments {
		switch {
		case word == "create" || word == "run":
			creates = true
		case (word == "--bundle" || word == "-b") && index+1 < len(arguments):
			bundle = arguments[index+1]
		}
	}
	if !creates {
		return ""
	}
	return bundle
}

// Everything that is not known here is kept as it is.
func addMounts(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	var process struct {
		Env []string `json:"env"`
	}
	if err := json.Unmarshal(config["process"], &process); err != nil {
		return err
	}
	if !seesGPUs(process.Env) {
		return nil
	}
	var mounts []any
	if err := json.Unmarshal(config["mounts"], &mounts); err != nil {
		return err
	}
	for _, source := range []string{program, count} {
		if _, err := os.Stat(source); err == nil {
			mounts = append(mounts, map[string]any{
				"destination": source, "type": "bind", "source": source, "options": []string{"bind", "ro", "nosuid", "nodev"},
			})
		}
	}
	if config["mounts"], err = json.Marshal(mounts); err != nil {
		return err
	}
	if text, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func seesGPUs(environment []string) bool {
	visible := ""
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); name == "NVIDIA_VISIBLE_DEVICES" {
			visible = value
		}
	}
	return visible != "" && visible != "void" && visible != "none"
}
