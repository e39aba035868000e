// Stands in for NVIDIA's DCGM exporter: the counters that its list names, of the pretend GPUs that the kubelet offers, with the pods that
// hold them. The kubelet's answers are real. The utilization of all GPUs, in percent, is in the file pretend-utilization beside the
// kubelet's socket and is read again and again; without it they are idle. Every other counter is 0.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	directory   = "/var/lib/kubelet/pod-resources"
	resource    = "nvidia.com/gpu"
	utilization = "DCGM_FI_DEV_GPU_UTIL"
	// What the container runtime mounts where GPUs are visible.
	driver = "/usr/bin/nvidia-smi"
)

type counter struct{ name, kind, help string }

type holder struct{ container, namespace, pod string }

type exporter struct {
	counters []counter
	kubelet  api.PodResourcesListerClient
}

func main() {
	collectors := flag.String("collectors", "", "the list of counters")
	address := flag.String("address", ":9400", "where it listens")
	kubernetes := flag.Bool("kubernetes", false, "whether pods are named")
	flag.Parse()
	if !*kubernetes {
		log.Fatal("only with --kubernetes")
	}
	if _, err := os.Stat(driver); err != nil {
		log.Fatalf("no GPU is visible: %v", err)
	}
	counters, err := readCounters(*collectors)
	if err != nil {
		log.Fatal(err)
	}
	connection, err := grpc.NewClient("unix:"+filepath.Join(directory, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	exporter := &exporter{counters: counters, kubelet: api.NewPodResourcesListerClient(connection)}
	http.HandleFunc("/metrics", exporter.serve)
	http.HandleFunc("/health", func(writer http.ResponseWriter, _ *http.Request) { fmt.Fprintln(writer, "OK") })
	log.Fatal(http.ListenAndServe(*address, nil))
}

func readCounters(path string) ([]counter, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comment, reader.TrimLeadingSpace = '#', true
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	var counters []counter
	for _, row := range rows {
		if len(row) != 3 || !strings.HasPrefix(row[0], "DCGM_FI_") {
			return nil, fmt.Errorf("%s: not a counter: %v", path, row)
		}
		counters = append(counters, counter{row[0], row[1], row[2]})
	}
	return counters, nil
}

// devices has every GPU, with what holds it.
func (exporter *exporter) devices(ctx context.Context) (map[string]holder, error) {
	devices := map[string]holder{}
	all, err := exporter.kubelet.GetAllocatableResources(ctx, &api.AllocatableResourcesRequest{})
	if err != nil {
		return nil, err
	}
	for _, part := range all.Devices {
		if part.ResourceName == resource {
			for _, id := range part.DeviceIds {
				devices[id] = holder{}
			}
		}
	}
	listed, err := exporter.kubelet.List(ctx, &api.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	for _, pod := range listed.PodResources {
		for _, container := range pod.Containers {
			for _, part := range container.Devices {
				if part.ResourceName == resource {
					for _, id := range part.DeviceIds {
						devices[id] = holder{container.Name, pod.Namespace, pod.Name}
					}
				}
			}
		}
	}
	return devices, nil
}

func readUtilization() (string, error) {
	text, err := os.ReadFile(filepath.Join(directory, "pretend-utilization"))
	if errors.Is(err, os.ErrNotExist) {
		return "0", nil
	}
	return strings.TrimSpace(string(text)), err
}

func (exporter *exporter) serve(writer http.ResponseWriter, request *http.Request) {
	ctx, stop := context.WithTimeout(request.Context(), 5*time.Second)
	defer stop()
	devices, err := exporter.devices(ctx)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	busy, err := readUtilization()
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	ids := make([]string, 0, len(devices))
	for id := range devices {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	writer.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, counter := range exporter.counters {
		fmt.Fprintf(writer, "# HELP %s %s\n# TYPE %s %s\n", counter.name, counter.help, counter.name, counter.kind)
		value := "0"
		if counter.name == utilization {
			value = busy
		}
		for index, id := range ids {
			labels := fmt.Sprintf("gpu=\"%d\",UUID=%q,device=\"nvidia%d\",modelName=\"pretend GPU\"", index, id, index)
			if held := devices[id]; held.pod != "" {
				labels += fmt.Sprintf(",container=%q,namespace=%q,pod=%q", held.container, held.namespace, held.pod)
			}
			fmt.Fprintf(writer, "%s{%s} %s\n", counter.name, labels, value)
		}
	}
}
