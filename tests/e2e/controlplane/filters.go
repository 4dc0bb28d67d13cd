package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	frameworkimpl "k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// The filter plugins that need nothing but nodes, pods and namespaces, with the arguments of the default profile.
// (PodTopologySpread's default constraints never filter.)
var filters = map[string]runtime.Object{
	"NodeUnschedulable": nil,
	"NodeName":          nil,
	"TaintToleration":   nil,
	"NodePorts":         nil,
	"NodeAffinity":      &config.NodeAffinityArgs{},
	"NodeResourcesFit": &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
		Type: config.LeastAllocated, Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}},
	}},
	"PodTopologySpread": &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting},
	"InterPodAffinity":  &config.InterPodAffinityArgs{HardPodAffinityWeight: 1},
}

// placement is the question on which nodes the filters let a pod. Pods with a nodeName are on their node.
type placement struct {
	Nodes      []*v1.Node      `json:"nodes"`
	Pods       []*v1.Pod       `json:"pods"`
	Namespaces []*v1.Namespace `json:"namespaces"`
	Pod        *v1.Pod         `json:"pod"`
	Seconds    float64         `json:"seconds"` // ignored; all questions have it
}

type placementAnswer struct {
	Outcome     string              `json:"outcome"` // decided, error, panic or bad_case
	Error       string              `json:"error,omitempty"`
	Refused     map[string][]string `json:"refused"` // by node: the plugins that do not let the pod in, each on its own
	Nanoseconds int64               `json:"nanoseconds"`
}

// runFilters answers one JSON question per line with one JSON answer per line.
func runFilters(in io.Reader, out io.Writer) error {
	metrics.Register() // plugins count, and crash where nobody does
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 1<<28)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var asked placement
		found := placementAnswer{Outcome: "bad_case"}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			found.Error = err.Error()
		} else {
			found = asked.answer()
		}
		if err := encoder.Encode(found); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (p *placement) answer() (found placementAnswer) {
	defer func() {
		if reason := recover(); reason != nil {
			found = placementAnswer{Outcome: "panic", Error: fmt.Sprint(reason)}
		}
	}()
	found = placementAnswer{Outcome: "decided", Refused: map[string][]string{}}
	for _, node := range p.Nodes {
		found.Refused[node.Name] = []string{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	snapshot := cache.NewSnapshot(p.Pods, p.Nodes)
	handle, err := p.handle(ctx, snapshot)
	if err == nil {
		start := time.Now()
		err = p.ask(ctx, handle, snapshot, found.Refused)
		found.Nanoseconds = time.Since(start).Nanoseconds()
	}
	if err != nil {
		found.Outcome, found.Error = "error", err.Error()
	}
	for _, names := range found.Refused {
		slices.Sort(names)
	}
	return found
}

// handle is what plugins see of the scheduler.
func (p *placement) handle(ctx context.Context, snapshot *cache.Snapshot) (framework.Handle, error) {
	// Nobody listens there and nobody asks: the informers are filled by hand.
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(&rest.Config{}), 0)
	for _, namespace := range p.Namespaces {
		if err := factory.Core().V1().Namespaces().Informer().GetIndexer().Add(namespace); err != nil {
			return nil, err
		}
	}
	return frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), nil,
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithInformerFactory(factory))
}

func (p *placement) ask(ctx context.Context, handle framework.Handle, snapshot *cache.Snapshot, refused map[string][]string) error {
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return err
	}
	for name, arguments := range filters {
		plugin, err := plugins.NewInTreeRegistry()[name](ctx, arguments, handle)
		if err != nil {
			return err
		}
		if err := p.askOne(ctx, plugin.(framework.FilterPlugin), nodes, refused); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (p *placement) askOne(ctx context.Context, plugin framework.FilterPlugin, nodes []framework.NodeInfo, refused map[string][]string) error {
	state := frameworkimpl.NewCycleState()
	var among *framework.PreFilterResult
	if preFilter, ok := plugin.(framework.PreFilterPlugin); ok {
		result, status := preFilter.PreFilter(ctx, state, p.Pod, nodes)
		switch {
		case status.IsSkip():
			return nil
		case status.IsRejected():
			for _, node := range nodes {
				refused[node.Node().Name] = append(refused[node.Node().Name], plugin.Name())
			}
			return nil
		case !status.IsSuccess():
			return status.AsError()
		}
		among = result
	}
	for _, node := range nodes {
		name := node.Node().Name
		if !among.AllNodes() && !among.NodeNames.Has(name) {
			refused[name] = append(refused[name], plugin.Name())
			continue
		}
		status := plugin.Filter(ctx, state, p.Pod, node)
		if status.IsRejected() {
			refused[name] = append(refused[name], plugin.Name())
		} else if !status.IsSuccess() {
			return status.AsError()
		}
	}
	return nil
}
