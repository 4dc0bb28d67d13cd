package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"
	frameworkimpl "k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// placement is the question on which nodes the filters let a pod, and how the scores rank those that all let in.
type placement struct {
	cluster
	Pod     *v1.Pod `json:"pod"`
	Seconds float64 `json:"seconds"` // ignored; all questions have it
}

type placementAnswer struct {
	Outcome     string                      `json:"outcome"` // decided, error, panic or bad_case
	Error       string                      `json:"error,omitempty"`
	Refused     map[string][]string         `json:"refused"`     // by node: the plugins that do not let the pod in, each on its own
	Scores      map[string]map[string]int64 `json:"scores"`      // by plugin and node: normalised and weighted; only plugins that take part
	Allocations map[string]reservations     `json:"allocations"` // by node that lets the pod in: what its claims would get there
	Nanoseconds int64                       `json:"nanoseconds"`
}

// runPlacements answers one JSON question per line with one JSON answer per line.
func runPlacements(in io.Reader, out io.Writer) error {
	metrics.Register() // plugins count, and crash where nobody does
	klog.SetLogger(logr.Discard())
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
	if err := p.setGates(); err != nil {
		return placementAnswer{Outcome: "error", Error: err.Error()}
	}
	if err := p.admit(); err != nil {
		return placementAnswer{Outcome: "bad_case", Error: err.Error()}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := p.settle(ctx, append(slices.Clone(p.Pods), p.Pod)); err != nil {
		return placementAnswer{Outcome: "error", Error: err.Error()}
	}
	plugins, nodes, err := p.scheduler(ctx)
	if err == nil {
		start := time.Now()
		found, err = p.decide(ctx, plugins, nodes)
		found.Nanoseconds = time.Since(start).Nanoseconds()
	}
	if err != nil {
		return placementAnswer{Outcome: "error", Error: err.Error()}
	}
	return found
}

// admit does to the pods what the API server does when they are created, and asks it about the claims.
func (p *placement) admit() error {
	for _, pod := range append(slices.Clone(p.Pods), p.Pod) {
		if err := admitPod(pod); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	p.setDefaults()
	for _, claim := range p.Claims {
		if err := validateClaim(claim); err != nil {
			return fmt.Errorf("claim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// decide asks every plugin on its own whether it lets the pod in, and for scores of the nodes where all of them do.
func (p *placement) decide(ctx context.Context, plugins []weightedPlugin, nodes []framework.NodeInfo) (placementAnswer, error) {
	found := placementAnswer{
		Outcome:     "decided",
		Refused:     map[string][]string{},
		Scores:      map[string]map[string]int64{},
		Allocations: map[string]reservations{},
	}
	for _, node := range nodes {
		found.Refused[node.Node().Name] = []string{}
	}
	state := frameworkimpl.NewCycleState()
	for _, plugin := range plugins {
		filter(ctx, plugin, state, p.Pod, nodes, found.Refused)
	}
	if !p.reservable() {
		for name, refusing := range found.Refused {
			if !slices.ContainsFunc(refusing, isClaims) {
				found.Refused[name] = append(refusing, names.DynamicResources)
			}
		}
	}
	var feasible []framework.NodeInfo
	for _, node := range nodes {
		refusing := found.Refused[node.Node().Name]
		slices.Sort(refusing)
		if len(refusing) == 0 {
			feasible = append(feasible, node)
		}
	}
	if len(feasible) == 0 {
		return found, nil
	}
	for _, plugin := range plugins {
		scores, err := score(ctx, plugin, state, p.Pod, feasible)
		if err != nil {
			return found, fmt.Errorf("%s: %w", plugin.Name(), err)
		}
		if scores != nil {
			found.Scores[plugin.Name()] = scores
		}
	}
	return found, p.reserve(ctx, plugins, state, feasible, found.Allocations)
}

// reserve asks for the allocations on each of the nodes that let the pod in.
func (p *placement) reserve(ctx context.Context, plugins []weightedPlugin, state framework.CycleState, nodes []framework.NodeInfo, found map[string]reservations) error {
	at := slices.IndexFunc(plugins, func(plugin weightedPlugin) bool { return plugin.Name() == names.DynamicResources })
	for _, node := range nodes {
		name := node.Node().Name
		p.reserved = reservations{}
		if status := plugins[at].Plugin.(framework.ReservePlugin).Reserve(ctx, state, p.Pod, name); !status.IsSuccess() {
			return fmt.Errorf("reserving on %s: %w", name, status.AsError())
		}
		found[name] = p.reserved
	}
	return nil
}

func isClaims(refusing string) bool {
	return strings.HasPrefix(refusing, names.DynamicResources)
}

func filter(ctx context.Context, plugin weightedPlugin, state framework.CycleState, pod *v1.Pod, nodes []framework.NodeInfo, refused map[string][]string) {
	var among *framework.PreFilterResult
	var status *framework.Status
	if preEnqueue, ok := plugin.Plugin.(framework.PreEnqueuePlugin); ok {
		status = preEnqueue.PreEnqueue(ctx, pod)
	}
	if preFilter, ok := plugin.Plugin.(framework.PreFilterPlugin); ok && status.IsSuccess() {
		among, status = preFilter.PreFilter(ctx, state, pod, nodes)
	}
	if status.IsSkip() {
		return
	}
	filter, filters := plugin.Plugin.(framework.FilterPlugin)
	for _, node := range nodes {
		found := status
		if found.IsSuccess() && !among.AllNodes() && !among.NodeNames.Has(node.Node().Name) {
			found = framework.NewStatus(framework.UnschedulableAndUnresolvable)
		}
		if found.IsSuccess() && filters {
			found = filter.Filter(ctx, state, pod, node)
		}
		if found.IsSuccess() {
			continue
		}
		name := plugin.Name()
		if !found.IsRejected() {
			name += "!" // it is not the node that is refused: the attempt is over
		}
		refused[node.Node().Name] = append(refused[node.Node().Name], name)
	}
}

// score is nil for a plugin that does not score, or not this pod.
func score(ctx context.Context, plugin weightedPlugin, state framework.CycleState, pod *v1.Pod, nodes []framework.NodeInfo) (map[string]int64, error) {
	scorer, ok := plugin.Plugin.(framework.ScorePlugin)
	if !ok {
		return nil, nil
	}
	if preScore, ok := plugin.Plugin.(framework.PreScorePlugin); ok {
		status := preScore.PreScore(ctx, state, pod, nodes)
		if status.IsSkip() {
			return nil, nil
		}
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	list := make(framework.NodeScoreList, len(nodes))
	for i, node := range nodes {
		given, status := scorer.Score(ctx, state, pod, node)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		list[i] = framework.NodeScore{Name: node.Node().Name, Score: given}
	}
	if extensions := scorer.ScoreExtensions(); extensions != nil {
		if status := extensions.NormalizeScore(ctx, state, pod, list); !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	scores := map[string]int64{}
	for _, entry := range list {
		scores[entry.Name] = entry.Score * plugin.weight
	}
	return scores, nil
}
