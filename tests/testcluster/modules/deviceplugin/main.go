// deviceplugin offers a kubelet devices that do not exist, as a vendor's device plugin offers GPUs: deviceplugin RESOURCE FILE. Each line
// of the file is a device, "ID Healthy" or "ID Unhealthy"; it is read again as it changes. It ends on SIGTERM.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

func main() {
	resource, file := os.Args[1], os.Args[2]
	logger, ctx := klog.Background(), context.Background()
	text, devices := read(file)
	socket := filepath.Join(api.DevicePluginPath, strings.ReplaceAll(resource, "/", "-")+".sock")
	stub := plugin.NewDevicePluginStub(logger, devices, socket, resource, false, false)
	stub.SetAllocFunc(func(asked *api.AllocateRequest, _ map[string]*api.Device) (*api.AllocateResponse, error) {
		given := &api.AllocateResponse{}
		for range asked.ContainerRequests {
			given.ContainerResponses = append(given.ContainerResponses, &api.ContainerAllocateResponse{})
		}
		return given, nil
	})
	if err := stub.Start(ctx); err != nil {
		klog.Fatal(err)
	}
	if err := stub.Register(ctx, api.KubeletSocket, resource, api.DevicePluginPath); err != nil {
		klog.Fatal(err)
	}
	for range time.Tick(200 * time.Millisecond) {
		if now, devices := read(file); now != text {
			text = now
			stub.Update(devices)
		}
	}
}

func read(file string) (string, []*api.Device) {
	text, err := os.ReadFile(file)
	if err != nil {
		klog.Fatal(err)
	}
	var devices []*api.Device
	for line := range strings.Lines(string(text)) {
		if id, health, found := strings.Cut(strings.TrimSpace(line), " "); found {
			devices = append(devices, &api.Device{ID: id, Health: health})
		}
	}
	return string(text), devices
}
