package main

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/status"
)

// Facts of the loop: kubernetes-sigs/cluster-autoscaler 33c3f97b, core/static_autoscaler.go, clusterstate/clusterstate.go,
// clusterstate/utils/node_instances_cache.go, core/scaleup/orchestrator, utils/backoff/exponential_backoff.go.
const (
	instancesKept  = 2 * time.Minute
	firstBackoff   = 5 * time.Minute
	longestBackoff = 30 * time.Minute
	backoffKept    = 3 * time.Hour
)

type backoff struct {
	until, failed time.Time
	lasts         time.Duration
	because       string
}

// autoscaler is what Cluster Autoscaler remembers from loop to loop; a restart forgets it.
type autoscaler struct {
	provider  *provider
	backoffs  map[string]*backoff
	instances map[string][]instance
	fetched   time.Time
	known     map[string]bool // failed instances that were seen before
	scaling   map[string]int  // nodes that a group was increased by and that are not there yet
}

func started(with *provider) *autoscaler {
	return &autoscaler{
		provider: with, backoffs: map[string]*backoff{}, instances: map[string][]instance{},
		known: map[string]bool{}, scaling: map[string]int{},
	}
}

// world is what Cluster Autoscaler reads from the API server: nodes, and pods that each ask for some devices of a driver.
type world struct {
	Now      float64 `json:"now"` // Unix seconds
	Nodes    []node  `json:"nodes"`
	Pods     int     `json:"pods"` // pending
	Devices  int     `json:"devices"`
	Driver   string  `json:"driver"`
	Unneeded []node  `json:"unneeded"`
}

// outcome is what a loop did; Ended says which failure ended it early.
type outcome struct {
	Ended     string                `json:"ended,omitempty"`
	Groups    []*group              `json:"groups"`
	Sizes     map[string]int        `json:"sizes"`
	Instances map[string][]instance `json:"instances"`
	Templates map[string]*template  `json:"templates"`
	Scaled    string                `json:"scaled,omitempty"`
	By        int                   `json:"by,omitempty"`
	Backoffs  map[string]string     `json:"backoffs"`
	Withdrawn []string              `json:"withdrawn"`
	GPULabel  string                `json:"gpuLabel"`
	Calls     []string              `json:"calls"`
}

func (a *autoscaler) loop(seen world) *outcome {
	now := time.Unix(0, int64(seen.Now*1e9))
	did := &outcome{Sizes: map[string]int{}, Templates: map[string]*template{}, Withdrawn: []string{}}
	if err := a.steps(seen, now, did); err != nil {
		did.Ended = err.Error()
	}
	did.Backoffs = map[string]string{}
	for id, found := range a.backoffs {
		if !found.until.Before(now) {
			did.Backoffs[id] = fmt.Sprintf("%s for %.0f s", found.because, found.lasts.Seconds())
		}
	}
	did.Instances, did.Calls, a.provider.calls = a.instances, a.provider.calls, nil
	return did
}

func (a *autoscaler) steps(seen world, now time.Time, did *outcome) error {
	p := a.provider
	if err := p.refresh(); err != nil {
		return fmt.Errorf("refresh: %s", status.Code(err))
	}
	did.Groups = p.nodeGroups()
	members, err := a.members(seen.Nodes)
	if err != nil {
		return fmt.Errorf("templates: %s", status.Code(err))
	}
	if err := a.templates(did, members); err != nil {
		return fmt.Errorf("templates: %s", status.Code(err))
	}
	if err := a.state(did, now, members); err != nil {
		return fmt.Errorf("cluster state: %s", status.Code(err))
	}
	did.GPULabel = p.label()
	if a.withdraw(did) { // what failed is deleted, and the state is made again
		if err := a.state(did, now, members); err != nil {
			return fmt.Errorf("cluster state: %s", status.Code(err))
		}
	}
	if seen.Pods > 0 {
		return a.scaleUp(seen, now, did)
	}
	return a.scaleDown(seen.Unneeded)
}

func (a *autoscaler) members(nodes []node) (map[string]int, error) {
	found := map[string]int{}
	for _, one := range nodes {
		id, err := a.provider.groupOf(one)
		if err != nil {
			return nil, err
		}
		if id != "" {
			found[id]++
		}
	}
	return found, nil
}

// templates of groups without nodes are asked for; one that fails for another reason than "not implemented" ends the loop.
func (a *autoscaler) templates(did *outcome, members map[string]int) error {
	for _, one := range did.Groups {
		if members[one.ID] > 0 {
			continue // made from a node
		}
		found, err := a.provider.templateOf(one)
		if err != nil {
			return err
		}
		did.Templates[one.ID] = found
	}
	return nil
}

// state asks for every size in every loop, and for instances every two minutes or when a group's were dropped.
func (a *autoscaler) state(did *outcome, now time.Time, members map[string]int) error {
	for _, one := range did.Groups {
		size, err := a.provider.targetSize(one)
		if err != nil {
			return err
		}
		did.Sizes[one.ID] = size
		if members[one.ID] >= size {
			delete(a.scaling, one.ID)
		}
	}
	if now.Sub(a.fetched) >= instancesKept {
		a.instances, a.fetched = map[string][]instance{}, now
	}
	for _, one := range did.Groups {
		if _, kept := a.instances[one.ID]; kept {
			continue
		}
		found, err := a.provider.nodes(one)
		if err != nil {
			return err
		}
		a.instances[one.ID] = found
	}
	for id, found := range a.instances {
		for _, one := range found {
			if one.Code != "" && !a.known[one.ID] {
				a.known[one.ID] = true
				if a.scaling[id] > 0 { // only a scale-up of its own backs off
					a.scaling[id]--
					a.backOff(id, fmt.Sprintf("class %d %s", one.Class, one.Code), now)
				}
			}
		}
	}
	return nil
}

// backOff doubles what the last one lasted, unless that still lasts.
func (a *autoscaler) backOff(id, because string, now time.Time) {
	lasts := firstBackoff
	if last := a.backoffs[id]; last != nil && now.Sub(last.failed) < backoffKept {
		lasts = last.lasts
		if last.until.Before(now) {
			lasts = min(2*lasts, longestBackoff)
		}
	}
	a.backoffs[id] = &backoff{until: now.Add(lasts), failed: now, lasts: lasts, because: because}
}

// withdraw deletes instances that could not be created, in every loop until they are gone. A group's options are asked
// for first; instances are dropped only if the deletion was answered.
func (a *autoscaler) withdraw(did *outcome) bool {
	any := false
	for _, one := range did.Groups {
		failed := []node{}
		for _, found := range a.instances[one.ID] {
			if found.Code != "" {
				failed = append(failed, node{Name: found.ID, ProviderID: found.ID})
			}
		}
		if len(failed) == 0 {
			continue
		}
		if _, err := a.provider.hasOptions(one); err != nil {
			continue
		}
		if err := a.provider.delete(one.ID, failed); err == nil {
			any = true
			delete(a.instances, one.ID)
			for _, found := range failed {
				did.Withdrawn = append(did.Withdrawn, found.ProviderID)
			}
		}
	}
	return any
}

// scaleUp takes the first group that may grow and whose template has the devices; nodes that are coming are counted.
// A refused increase backs off.
func (a *autoscaler) scaleUp(seen world, now time.Time, did *outcome) error {
	upcoming := 0 // what is ordered and not ready takes its pods first
	for _, one := range did.Groups {
		upcoming += did.Sizes[one.ID]
	}
	for _, one := range seen.Nodes {
		if one.Ready {
			upcoming--
		}
	}
	for _, one := range did.Groups {
		if last := a.backoffs[one.ID]; last != nil && !last.until.Before(now) {
			continue
		}
		size, err := a.provider.targetSize(one)
		if err != nil || size >= one.Max {
			continue
		}
		if _, err := a.provider.hasOptions(one); err != nil {
			continue
		}
		each := fitting(did.Templates[one.ID], seen)
		if each == 0 {
			continue
		}
		wanted := int(math.Ceil(float64(seen.Pods)/float64(each))) - upcoming
		wanted = min(wanted, one.Max-size)
		if wanted <= 0 {
			return nil
		}
		did.Scaled, did.By = one.ID, wanted
		if err := a.provider.increase(one.ID, wanted); err != nil {
			a.backOff(one.ID, "class 99 cloudProviderError", now)
			return fmt.Errorf("increase: %s", status.Code(err))
		}
		a.scaling[one.ID] += wanted
		return nil
	}
	return nil
}

// fitting is how many of the pods the node of a template takes: 0 without slices, because a claim finds no device.
func fitting(of *template, seen world) int {
	if of == nil || of.Node == nil {
		return 0
	}
	devices := 0
	for _, piece := range of.Slices {
		if piece.Spec.Driver == seen.Driver {
			devices += len(piece.Spec.Devices)
		}
	}
	return devices / seen.Devices
}

func (a *autoscaler) scaleDown(unneeded []node) error {
	for _, one := range unneeded {
		id, err := a.provider.groupOf(one)
		if err != nil || id == "" {
			return fmt.Errorf("scale down: node %s has no group", one.Name)
		}
		if err := a.provider.delete(id, []node{one}); err != nil {
			return fmt.Errorf("scale down: %s", status.Code(err))
		}
	}
	return nil
}
