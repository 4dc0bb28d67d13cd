package main

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1alpha2"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
)

// The controller handles claims by namespace and name; once this one has lost its consumer, the others are done.
const lastClaim = "~"

// settle lets the controller of claims take reservations from pods that ran to their end, free devices and delete claims.
func (c *cluster) settle(ctx context.Context, pods []*v1.Pod) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: lastClaim, Namespace: lastClaim}}
	last.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: lastClaim, UID: lastClaim}}
	claims := append(objects(c.Claims), last)
	client := fake.NewSimpleClientset(slices.Concat(objects(pods), claims, objects(c.PodGroups))...)
	done := make(chan struct{})
	client.PrependReactor("update", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		claim := action.(clienttesting.UpdateAction).GetObject().(*resourcev1.ResourceClaim)
		if claim.Name == lastClaim {
			close(done)
		}
		return claim.Name == lastClaim, claim, nil
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	core, resource := factory.Core().V1(), factory.Resource().V1()
	if err := fill(core.Pods().Informer(), objects(pods)); err != nil {
		return err
	}
	if err := fill(resource.ResourceClaims().Informer(), claims); err != nil {
		return err
	}
	groups := factory.Scheduling().V1alpha2().PodGroups()
	if err := fill(groups.Informer(), objects(c.PodGroups)); err != nil {
		return err
	}
	features := resourceclaim.Features{AdminAccess: true, PrioritizedList: true, WorkloadResourceClaims: c.GroupClaimsInForce}
	controller, err := resourceclaim.NewController(klog.FromContext(ctx), features, client,
		filledPods{core.Pods()}, filledGroups{groups}, filledClaims{resource.ResourceClaims()}, filledTemplates{resource.ResourceClaimTemplates()})
	if err != nil {
		return err
	}
	go controller.Run(ctx, 1)
	<-done
	found, err := client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	c.Claims = nil
	for _, claim := range found.Items {
		gone := claim.DeletionTimestamp != nil && len(claim.Finalizers) == 0
		if claim.Name != lastClaim && !gone {
			c.Claims = append(c.Claims, &claim)
		}
	}
	return nil
}

func fill(informer toolscache.SharedIndexInformer, objects []runtime.Object) error {
	for _, object := range objects {
		if err := informer.GetIndexer().Add(object); err != nil {
			return err
		}
	}
	return nil
}

// filled is an informer that was filled by hand: whoever listens hears of every object at once, and of nothing later.
type filled struct {
	toolscache.SharedIndexInformer
}

func (f filled) HasSynced() bool { return true }

func (f filled) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	keys := f.GetIndexer().ListKeys()
	slices.SortFunc(keys, cmp.Compare[string])
	for _, key := range keys {
		object, _, err := f.GetIndexer().GetByKey(key)
		if err != nil {
			return nil, err
		}
		handler.OnAdd(object, true)
	}
	return synced{}, nil
}

func (f filled) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

// synced is the registration of a handler that has heard of everything.
type synced struct{}

func (synced) HasSynced() bool { return true }

func (s synced) HasSyncedChecker() toolscache.DoneChecker { return s }

func (synced) Name() string { return "filled by hand" }

func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// silent is a filled informer that tells nobody.
type silent struct {
	filled
}

func (silent) AddEventHandlerWithOptions(toolscache.ResourceEventHandler, toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return synced{}, nil
}

// filledPods are known to the controller, which starts from the claims.
type filledPods struct {
	coreinformers.PodInformer
}

func (f filledPods) Informer() toolscache.SharedIndexInformer {
	return silent{filled{f.PodInformer.Informer()}}
}

// filledGroups are known to it like the pods.
type filledGroups struct {
	schedulinginformers.PodGroupInformer
}

func (f filledGroups) Informer() toolscache.SharedIndexInformer {
	return silent{filled{f.PodGroupInformer.Informer()}}
}

type filledClaims struct {
	resourceinformers.ResourceClaimInformer
}

func (f filledClaims) Informer() toolscache.SharedIndexInformer {
	return filled{f.ResourceClaimInformer.Informer()}
}

type filledTemplates struct {
	resourceinformers.ResourceClaimTemplateInformer
}

func (f filledTemplates) Informer() toolscache.SharedIndexInformer {
	return filled{f.ResourceClaimTemplateInformer.Informer()}
}
