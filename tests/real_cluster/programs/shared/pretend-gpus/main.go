// Stands in for NVIDIA's device plugin: offers nvidia.com/gpu devices that do not exist, so that the scheduler, kubelets and jobs
// meet them as on a GPU machine. The file pretend-gpus in the directory of device plugins holds their number and is read again and
// again; without it the variable PRETEND_GPUS does, and without both there is one.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	socketName = "pretend-gpus.sock"
	resource   = "nvidia.com/gpu"
	interval   = time.Second
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	directory string
	ending    context.Context
}

func (plugin *plugin) count() (int, error) {
	text, err := os.ReadFile(filepath.Join(plugin.directory, "pretend-gpus"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		text = []byte(os.Getenv("PRETEND_GPUS"))
	case err != nil:
		return 0, err
	}
	word := strings.TrimSpace(string(text))
	if word == "" {
		return 1, nil
	}
	return strconv.Atoi(word)
}

func (plugin *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (plugin *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	sent := -1
	for {
		count, err := plugin.count()
		if err != nil {
			log.Printf("the number of GPUs cannot be read, %d stay offered: %v", max(sent, 0), err)
		} else if count != sent {
			response := &api.ListAndWatchResponse{}
			for index := range count {
				response.Devices = append(response.Devices, &api.Device{ID: fmt.Sprintf("GPU-pretend-%d", index), Health: api.Healthy})
			}
			if err := stream.Send(response); err != nil {
				return err
			}
			log.Printf("%d of %s are offered", count, resource)
			sent = count
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-plugin.ending.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

func (plugin *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return response, nil
}

// serve offers the devices to one run of the kubelet: until its socket is another one, which a restarted kubelet makes.
func (plugin *plugin) serve() error {
	kubelet := filepath.Join(plugin.directory, "kubelet.sock")
	own := filepath.Join(plugin.directory, socketName)
	first, err := os.Stat(kubelet)
	if err != nil {
		return fmt.Errorf("the kubelet does not listen: %w", err)
	}
	if err := os.Remove(own); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, plugin)
	defer server.Stop()
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Printf("serving ended: %v", err)
		}
	}()
	connection, err := grpc.NewClient("unix:"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	limited, stop := context.WithTimeout(plugin.ending, 10*time.Second)
	defer stop()
	_, err = api.NewRegistrationClient(connection).Register(limited, &api.RegisterRequest{
		Version: api.Version, Endpoint: socketName, ResourceName: resource,
	})
	if err != nil {
		return fmt.Errorf("the kubelet did not register the devices: %w", err)
	}
	log.Printf("%s is registered", resource)
	for {
		select {
		case <-plugin.ending.Done():
			return nil
		case <-time.After(interval):
		}
		now, err := os.Stat(kubelet)
		if err != nil || !os.SameFile(first, now) {
			return errors.New("the kubelet restarted")
		}
		if _, err := os.Stat(own); err != nil {
			return errors.New("the kubelet deleted this plugin's socket")
		}
	}
}

func main() {
	directory := filepath.Clean(api.DevicePluginPath)
	if len(os.Args) > 1 {
		directory = os.Args[1]
	}
	ending, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	plugin := &plugin{directory: directory, ending: ending}
	for ending.Err() == nil {
		if err := plugin.serve(); err != nil {
			log.Printf("%v; trying again", err)
		}
		select {
		case <-ending.Done():
		case <-time.After(interval):
		}
	}
}
