package main

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// cluster is everything the plugins look at. Pods with a nodeName are on their node.
type cluster struct {
	Nodes          []*v1.Node                  `json:"nodes"`
	Pods           []*v1.Pod                   `json:"pods"`
	Namespaces     []*v1.Namespace             `json:"namespaces"`
	Volumes        []*v1.PersistentVolume      `json:"volumes"`
	VolumeClaims   []*v1.PersistentVolumeClaim `json:"volumeClaims"`
	StorageClasses []*storagev1.StorageClass   `json:"storageClasses"`
	CSINodes       []*storagev1.CSINode        `json:"csiNodes"`
	CSIDrivers     []*storagev1.CSIDriver      `json:"csiDrivers"`
	Services       []*v1.Service               `json:"services"`
	ReplicaSets    []*appsv1.ReplicaSet        `json:"replicaSets"`
	StatefulSets   []*appsv1.StatefulSet       `json:"statefulSets"`
	Claims         []*resourcev1.ResourceClaim `json:"claims"`
	Classes        []*resourcev1.DeviceClass   `json:"classes"`
	Slices         []*resourcev1.ResourceSlice `json:"slices"`

	StorageCapacities []*storagev1.CSIStorageCapacity `json:"storageCapacities"`
	Attachments       []*storagev1.VolumeAttachment   `json:"volumeAttachments"`

	TaintRules        []*resourcev1beta2.DeviceTaintRule `json:"taintRules"`
	TaintRulesInForce bool                               `json:"taintRulesInForce"` // the gate DRADeviceTaintRules

	PodGroups          []*schedulingv1alpha2.PodGroup `json:"podGroups"`
	GroupClaimsInForce bool                           `json:"groupClaimsInForce"` // the gate DRAWorkloadResourceClaims

	reserved reservations
}

// weightedPlugin is a plugin of the default profile with the weight of its score.
type weightedPlugin struct {
	framework.Plugin
	weight int64
}

// neither filters nor scores, and wants more of a cluster than there is.
var leftOut = map[string]bool{names.PrioritySort: true, names.DefaultPreemption: true, names.DefaultBinder: true}

// admitPod sets defaults and prepares the pod as the registry of the API server does, label keys merged into selectors
// included; an error is what validation says.
func admitPod(pod *v1.Pod) error {
	legacyscheme.Scheme.Default(pod)
	var internal core.Pod
	if err := legacyscheme.Scheme.Convert(pod, &internal, nil); err != nil {
		return err
	}
	deleted, status := internal.DeletionTimestamp, internal.Status
	ctx := genericrequest.WithNamespace(context.Background(), pod.Namespace)
	podregistry.Strategy.PrepareForCreate(ctx, &internal)
	if err := podregistry.Strategy.Validate(ctx, &internal).ToAggregate(); err != nil {
		return err
	}
	internal.DeletionTimestamp = deleted
	internal.Status.ResourceClaimStatuses = status.ResourceClaimStatuses
	internal.Status.Conditions, internal.Status.Resources, internal.Status.AllocatedResources = status.Conditions, status.Resources, status.AllocatedResources
	internal.Status.ContainerStatuses, internal.Status.InitContainerStatuses = status.ContainerStatuses, status.InitContainerStatuses
	if status.Phase != "" {
		internal.Status.Phase = status.Phase
	}
	return legacyscheme.Scheme.Convert(&internal, pod, nil)
}

// setGates makes the gates of the process those of the cluster. PodGroups exist behind a gate that theirs depends on.
func (c *cluster) setGates() error {
	return feature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(features.GenericWorkload):           c.GroupClaimsInForce,
		string(features.DRAWorkloadResourceClaims): c.GroupClaimsInForce,
	})
}

func (c *cluster) setDefaults() {
	for _, object := range c.objects() {
		legacyscheme.Scheme.Default(object)
	}
}

func (c *cluster) objects() []runtime.Object {
	var all []runtime.Object
	all = append(all, objects(c.Volumes)...)
	all = append(all, objects(c.VolumeClaims)...)
	all = append(all, objects(c.StorageClasses)...)
	all = append(all, objects(c.Services)...)
	all = append(all, objects(c.ReplicaSets)...)
	all = append(all, objects(c.StatefulSets)...)
	all = append(all, objects(c.Claims)...)
	all = append(all, objects(c.Classes)...)
	all = append(all, objects(c.Slices)...)
	all = append(all, objects(c.TaintRules)...)
	all = append(all, objects(c.PodGroups)...)
	return all
}

func objects[T runtime.Object](list []T) []runtime.Object {
	found := make([]runtime.Object, len(list))
	for i, object := range list {
		found[i] = object
	}
	return found
}

// scheduler makes the plugins of the default profile, with their arguments there, and the nodes as they see them.
func (c *cluster) scheduler(ctx context.Context) ([]weightedPlugin, []framework.NodeInfo, error) {
	// The scheduler's cache has no pods that ran to their end, and none that nobody has assigned.
	running := slices.DeleteFunc(slices.Clone(c.Pods), func(pod *v1.Pod) bool {
		return podutil.IsPodTerminal(pod) || pod.Spec.NodeName == ""
	})
	snapshot := cache.NewSnapshot(running, c.Nodes)
	handle, err := c.handle(ctx, snapshot)
	if err != nil {
		return nil, nil, err
	}
	configuration, err := latest.Default()
	if err != nil {
		return nil, nil, err
	}
	profile := configuration.Profiles[0]
	arguments := map[string]runtime.Object{}
	for _, entry := range profile.PluginConfig {
		arguments[entry.Name] = entry.Args
	}
	registry := plugins.NewInTreeRegistry()
	var found []weightedPlugin
	for _, entry := range profile.Plugins.MultiPoint.Enabled {
		if leftOut[entry.Name] {
			continue
		}
		plugin, err := registry[entry.Name](ctx, arguments[entry.Name], handle)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, weightedPlugin{plugin, int64(max(entry.Weight, 1))})
	}
	nodes, err := snapshot.NodeInfos().List()
	return found, nodes, err
}

// handle is what plugins see of the scheduler. Nobody listens at its client and nobody asks: informers are filled by hand.
func (c *cluster) handle(ctx context.Context, snapshot *cache.Snapshot) (framework.Handle, error) {
	client := kubernetes.NewForConfigOrDie(&rest.Config{})
	factory := informers.NewSharedInformerFactory(client, 0)
	core, storage, apps, resource := factory.Core().V1(), factory.Storage().V1(), factory.Apps().V1(), factory.Resource().V1()
	rules := factory.Resource().V1beta2().DeviceTaintRules()
	for _, entry := range []struct {
		informer toolscache.SharedIndexInformer
		objects  []runtime.Object
	}{
		{core.Nodes().Informer(), objects(c.Nodes)},
		{core.Namespaces().Informer(), objects(c.Namespaces)},
		{core.PersistentVolumes().Informer(), objects(c.Volumes)},
		{core.PersistentVolumeClaims().Informer(), objects(c.VolumeClaims)},
		{core.Services().Informer(), objects(c.Services)},
		{storage.StorageClasses().Informer(), objects(c.StorageClasses)},
		{storage.CSINodes().Informer(), objects(c.CSINodes)},
		{storage.CSIDrivers().Informer(), objects(c.CSIDrivers)},
		{storage.CSIStorageCapacities().Informer(), objects(c.StorageCapacities)},
		{storage.VolumeAttachments().Informer(), objects(c.Attachments)},
		{apps.ReplicaSets().Informer(), objects(c.ReplicaSets)},
		{apps.StatefulSets().Informer(), objects(c.StatefulSets)},
		{resource.ResourceClaims().Informer(), objects(c.Claims)},
		{resource.DeviceClasses().Informer(), objects(c.Classes)},
		{resource.ResourceSlices().Informer(), objects(c.Slices)},
		{rules.Informer(), objects(c.TaintRules)},
		{factory.Scheduling().V1alpha2().PodGroups().Informer(), objects(c.PodGroups)},
	} {
		if err := fill(entry.informer, entry.objects); err != nil {
			return nil, err
		}
	}
	published, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules:   c.TaintRulesInForce,
		EnableConsumableCapacity: true,
		SliceInformer:            filledSlices{resource.ResourceSlices()},
		TaintInformer:            filledRules{rules},
		ClassInformer:            filledClasses{resource.DeviceClasses()},
	})
	if err != nil {
		return nil, err
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), present(objects(c.Claims)), "ResourceClaim", "", nil)
	devices := dynamicresources.NewDRAManager(ctx, claims, published, factory)
	if handler, ok := devices.DeviceClassResolver().(toolscache.ResourceEventHandler); ok {
		for _, class := range c.Classes {
			handler.OnAdd(class, true)
		}
	}
	return frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), nil,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(&reservingManager{devices, &c.reserved}),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(storage.CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(snapshot))
}

// present is an informer whose objects were there before anybody listened.
type present []runtime.Object

func (p present) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	for _, object := range p {
		handler.OnAdd(object, true)
	}
	return nil, nil
}
