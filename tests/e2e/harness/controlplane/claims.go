package main

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	resourcev1beta2informers "k8s.io/client-go/informers/resource/v1beta2"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/resource/validation"
)

// validateClaim says what the API server has against the claim, or against its status.
func validateClaim(claim *resourcev1.ResourceClaim) error {
	var internal resource.ResourceClaim
	if err := legacyscheme.Scheme.Convert(claim.DeepCopy(), &internal, nil); err != nil {
		return err
	}
	// What is being deleted was not when it got its status.
	internal.DeletionTimestamp = nil
	internal.ResourceVersion = "1"
	before := internal.DeepCopy()
	before.Status = resource.ResourceClaimStatus{}
	problems := validation.ValidateResourceClaim(&internal)
	return append(problems, validation.ValidateResourceClaimStatusUpdate(&internal, before)...).ToAggregate()
}

// reservable says whether the API server would take the reservations for the pod that PreBind writes.
func (p *placement) reservable() bool {
	for _, entry := range p.Pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(p.Pod, &entry)
		if err != nil {
			continue // the plugin has said so
		}
		at := slices.IndexFunc(p.Claims, func(claim *resourcev1.ResourceClaim) bool {
			return name != nil && claim.Name == *name && claim.Namespace == p.Pod.Namespace
		})
		if at < 0 || p.Claims[at].Status.Allocation == nil || resourceclaim.IsReservedForPod(p.Pod, p.Claims[at], p.GroupClaimsInForce) {
			continue
		}
		reserved := p.Claims[at].DeepCopy()
		reserved.Status.ReservedFor = append(reserved.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
			Resource: "pods", Name: p.Pod.Name, UID: p.Pod.UID,
		})
		if validateClaim(reserved) != nil {
			return false
		}
	}
	return true
}

// reservations are the allocations that Reserve makes up, by the name of the claim.
type reservations map[string]*resourcev1.AllocationResult

// reservingManager notes what the plugin reserves and forgets it, so that the next node finds everything free again.
type reservingManager struct {
	framework.SharedDRAManager
	noted *reservations
}

func (m *reservingManager) ResourceClaims() framework.ResourceClaimTracker {
	return &reservingTracker{m.SharedDRAManager.ResourceClaims(), m.noted}
}

type reservingTracker struct {
	framework.ResourceClaimTracker
	noted *reservations
}

func (t *reservingTracker) SignalClaimPendingAllocation(_ types.UID, claim *resourcev1.ResourceClaim) error {
	allocation := claim.Status.Allocation.DeepCopy()
	for i := range allocation.Devices.Results {
		if result := &allocation.Devices.Results[i]; result.ShareID != nil {
			*result.ShareID = "SHARE" // it is random
		}
	}
	(*t.noted)[claim.Name] = allocation
	return nil
}

type filledSlices struct {
	resourceinformers.ResourceSliceInformer
}

func (f filledSlices) Informer() toolscache.SharedIndexInformer {
	return filled{f.ResourceSliceInformer.Informer()}
}

type filledRules struct {
	resourcev1beta2informers.DeviceTaintRuleInformer
}

func (f filledRules) Informer() toolscache.SharedIndexInformer {
	return filled{f.DeviceTaintRuleInformer.Informer()}
}

type filledClasses struct {
	resourceinformers.DeviceClassInformer
}

func (f filledClasses) Informer() toolscache.SharedIndexInformer {
	return filled{f.DeviceClassInformer.Informer()}
}
