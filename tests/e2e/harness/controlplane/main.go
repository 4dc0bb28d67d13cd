// Command controlplane is one component of a real Kubernetes control plane, named by its first argument:
// etcd, apiserver, controller-manager or scheduler. The end-to-end tests run four of them on loopback.
//
// With "placements" it answers questions to the scheduler's plugins instead, see placements.go.
//
// A component ends when its standard input closes, so none outlives the test process, however that one died.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var commands = map[string]func() *cobra.Command{
	"apiserver":          apiserver.NewAPIServerCommand,
	"controller-manager": controllermanager.NewControllerManagerCommand,
	"scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	if len(os.Args) < 2 {
		fail()
	}
	component := os.Args[1]
	if component == "placements" {
		if err := runPlacements(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	// client-go derives the field manager from the program's name.
	os.Args = append([]string{"kube-" + component}, os.Args[2:]...)
	if component == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := commands[component]
	if !known {
		fail()
	}
	os.Exit(cli.Run(command()))
}

func fail() {
	fmt.Fprintln(os.Stderr, "usage: controlplane etcd|apiserver|controller-manager|scheduler [flags]; or controlplane placements")
	os.Exit(2)
}
