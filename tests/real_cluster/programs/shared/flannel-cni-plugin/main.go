// Stands in for flannel's CNI plugin, whose module cannot be had everywhere: reads the subnet that flanneld leased for this machine
// and has the bridge plugin connect the pod to it. Written from flannel's documented behaviour: a network configuration with
// "delegate" and /run/flannel/subnet.env come in, the delegate's result goes out.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

type configuration struct {
	types.NetConf
	SubnetFile string         `json:"subnetFile"`
	DataDir    string         `json:"dataDir"`
	Delegate   map[string]any `json:"delegate"`
}

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: check}, version.All, "connects pods to the subnet that flannel leased")
}

func parse(input []byte) (*configuration, error) {
	parsed := &configuration{SubnetFile: "/run/flannel/subnet.env", DataDir: "/var/lib/cni/flannel"}
	if err := json.Unmarshal(input, parsed); err != nil {
		return nil, fmt.Errorf("the network configuration cannot be read: %w", err)
	}
	return parsed, nil
}

// The lease of flanneld: lines of NAME=VALUE.
func readLease(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("flannel has not leased a subnet yet: %w", err)
	}
	lease := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, found := strings.Cut(line, "="); found {
			lease[name] = value
		}
	}
	for _, name := range []string{"FLANNEL_NETWORK", "FLANNEL_SUBNET", "FLANNEL_MTU", "FLANNEL_IPMASQ"} {
		if lease[name] == "" {
			return nil, fmt.Errorf("%s has no %s", path, name)
		}
	}
	return lease, nil
}

// What the delegate gets: what the configuration says, filled up from the lease.
func delegateConfiguration(parsed *configuration, lease map[string]string) (map[string]any, error) {
	mtu, err := strconv.Atoi(lease["FLANNEL_MTU"])
	if err != nil {
		return nil, fmt.Errorf("FLANNEL_MTU: %w", err)
	}
	masqueraded, err := strconv.ParseBool(lease["FLANNEL_IPMASQ"])
	if err != nil {
		return nil, fmt.Errorf("FLANNEL_IPMASQ: %w", err)
	}
	// The lease names the bridge's own address in the subnet.
	_, subnet, err := net.ParseCIDR(lease["FLANNEL_SUBNET"])
	if err != nil {
		return nil, fmt.Errorf("FLANNEL_SUBNET: %w", err)
	}
	delegate := map[string]any{
		"type":      "bridge",
		"isGateway": true,
		"mtu":       mtu,
		// Either flanneld translates addresses or the bridge plugin does.
		"ipMasq": !masqueraded,
		"ipam": map[string]any{
			"type":   "host-local",
			"ranges": [][]map[string]string{{{"subnet": subnet.String()}}},
			"routes": []map[string]string{{"dst": lease["FLANNEL_NETWORK"]}},
		},
	}
	for name, value := range parsed.Delegate {
		delegate[name] = value
	}
	delegate["name"] = parsed.Name
	delegate["cniVersion"] = parsed.CNIVersion
	return delegate, nil
}

func add(arguments *skel.CmdArgs) error {
	parsed, err := parse(arguments.StdinData)
	if err != nil {
		return err
	}
	lease, err := readLease(parsed.SubnetFile)
	if err != nil {
		return err
	}
	delegate, err := delegateConfiguration(parsed, lease)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(delegate)
	if err != nil {
		return err
	}
	// Kept for the deletion: the lease may have changed by then.
	if err := os.MkdirAll(parsed.DataDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(parsed.DataDir, arguments.ContainerID), encoded, 0o600); err != nil {
		return err
	}
	result, err := invoke.DelegateAdd(context.TODO(), delegate["type"].(string), encoded, nil)
	if err != nil {
		return err
	}
	return types.PrintResult(result, parsed.CNIVersion)
}

// Kubernetes may ask again until it succeeds, and for a pod that was never connected: both are no errors.
func del(arguments *skel.CmdArgs) error {
	parsed, err := parse(arguments.StdinData)
	if err != nil {
		return err
	}
	path := filepath.Join(parsed.DataDir, arguments.ContainerID)
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var delegate types.NetConf
	if err := json.Unmarshal(encoded, &delegate); err != nil {
		return err
	}
	if err := invoke.DelegateDel(context.TODO(), delegate.Type, encoded, nil); err != nil {
		return err
	}
	return os.Remove(path)
}

// Kubernetes does not ask for it.
func check(*skel.CmdArgs) error {
	return nil
}
