package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Share ids are random; answers hold this in their place.
const anyShare = types.UID("SHARE")

// allocation is the question which devices the claims get on the node. Objects are given to the library as they stand:
// no defaults, no validation.
type allocation struct {
	Node    *v1.Node                     `json:"node"`
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
	Held    []*resourceapi.ResourceClaim `json:"held"` // allocated claims
}

type allocationAnswer struct {
	Outcome     string        `json:"outcome"` // fits, no_fit, fatal, timeout or panic
	NodeError   bool          `json:"nodeError,omitempty"`
	Error       string        `json:"error,omitempty"`
	Steps       int64         `json:"steps"` // calls of allocateOne
	Results     []claimAnswer `json:"results,omitempty"`
	Nanoseconds int64         `json:"nanoseconds"`
}

type claimAnswer struct {
	Claim        string                                      `json:"claim"`
	NodeSelector *v1.NodeSelector                            `json:"nodeSelector,omitempty"`
	Devices      []resourceapi.DeviceRequestAllocationResult `json:"devices"`
	Config       []resourceapi.DeviceAllocationConfiguration `json:"config,omitempty"`
}

func (a *allocation) answer(features structured.Features, cel dracel.Features, limit time.Duration, repeat int) (found allocationAnswer) {
	defer func() {
		if reason := recover(); reason != nil {
			found = allocationAnswer{Outcome: "panic", Error: fmt.Sprint(reason)}
		}
	}()
	nanoseconds := timed(repeat, func() { found = a.once(features, cel, limit) })
	found.Nanoseconds = nanoseconds
	return found
}

func (a *allocation) once(features structured.Features, cel dracel.Features, limit time.Duration) allocationAnswer {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, features, allocated(a.Held, features.ConsumableCapacity), classes(a.Classes), a.Slices, programs(cel))
	if err != nil {
		return allocationAnswer{Outcome: "fatal", Error: err.Error()}
	}
	results, err := allocator.Allocate(ctx, a.Node, a.Claims)
	found := allocationAnswer{Steps: steps(allocator)}
	if err != nil {
		found.Error = err.Error()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		found.Outcome = "timeout"
	case nodeError(err):
		found.Outcome, found.NodeError = "no_fit", true
	case err != nil:
		found.Outcome = "fatal"
	case len(results) != len(a.Claims):
		found.Outcome = "no_fit"
	default:
		found.Outcome, found.Results = "fits", a.results(results)
	}
	return found
}

func (a *allocation) results(results []resourceapi.AllocationResult) []claimAnswer {
	found := make([]claimAnswer, len(results))
	for i, result := range results {
		for j := range result.Devices.Results {
			if id := result.Devices.Results[j].ShareID; id != nil {
				*id = anyShare
			}
		}
		found[i] = claimAnswer{a.Claims[i].Name, result.NodeSelector, result.Devices.Results, result.Devices.Config}
	}
	return found
}

// allocated is the state that kube-scheduler keeps of allocated claims (its dynamicresources plugin,
// foreachAllocatedDevice in allocateddevices.go, v1.36.3).
func allocated(claims []*resourceapi.ResourceClaim, consumable bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case ptr.Deref(result.AdminAccess, false):
			case !consumable || result.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			}
		}
	}
	return state
}

// steps reads the allocator's statistics, whose type is internal to the library.
func steps(allocator structured.Allocator) int64 {
	method := reflect.ValueOf(allocator).MethodByName("GetStats")
	if !method.IsValid() {
		return 0
	}
	return reflect.Indirect(method.Call(nil)[0]).FieldByName("NumAllocateOneInvocations").Int()
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("deviceclass %q not found", name)
}

var caches = map[dracel.Features]*dracel.Cache{}

// programs is a cache of compiled selectors, as kube-scheduler keeps one.
func programs(features dracel.Features) *dracel.Cache {
	if caches[features] == nil {
		caches[features] = dracel.NewCache(2000, features)
	}
	return caches[features]
}
