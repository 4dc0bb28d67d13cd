// Command karpenter plans a workload's document (benchmarks/documents.py) with Karpenter's own scheduler and its DRA
// allocator. It reads the document from standard input and prints one JSON line, as benchmarks.workload does.
//
// Nothing of a cluster exists: one NodePool without limits that matter, every type in three zones, no nodes. The time is
// that of one round of scheduling; reading the document and making the objects is left out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	dra "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	karpsched "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling/dynamicresources"
	"sigs.k8s.io/karpenter/pkg/test"
)

const (
	gpuDriver = "gpu.nvidia.com"
	namespace = "default"
	// Karpenter's own bound on one round (pkg/controllers/provisioning/provisioner.go, v1.15.0).
	round = time.Minute
	// MaxConcurrentReconciles of the scheduler's filters; two cores do not use more.
	workers = 5
)

type machine struct {
	Name  string  `json:"name"`
	Model string  `json:"model"`
	GPUs  int     `json:"gpus"`
	Price float64 `json:"usd_per_hour"`
}

type request struct {
	Count    int64  `json:"count"`
	Selector string `json:"selector"`
}

type consumer struct {
	Name     string    `json:"name"`
	CPU      any       `json:"cpu"` // a number of cores, or a quantity
	Memory   string    `json:"memory"`
	Requests []request `json:"requests"`
}

type document struct {
	Types []machine  `json:"types"`
	Pods  []consumer `json:"pods"`
}

type result struct {
	Peer        string  `json:"peer"`
	Seconds     float64 `json:"seconds"`
	Nodes       int     `json:"nodes"`
	Scheduled   int     `json:"scheduled"`
	Unscheduled int     `json:"unscheduled"`
	USDPerHour  float64 `json:"usd_per_hour"`
	Error       string  `json:"error,omitempty"`
}

// apiServer is all that the scheduler reads: DeviceClasses named like a driver, and the claims of the document.
type apiServer struct {
	client.Client
	claims map[types.NamespacedName]*dra.ResourceClaim
}

func (a apiServer) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}

func (a apiServer) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	switch object := out.(type) {
	case *dra.ResourceClaim:
		if known := a.claims[key]; known != nil {
			known.DeepCopyInto(object)
			return nil
		}
	case *dra.DeviceClass:
		object.Name = key.Name
		object.Spec.Selectors = cel(fmt.Sprintf("device.driver == %q", key.Name))
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func cel(expression string) []dra.DeviceSelector {
	if expression == "" {
		return nil
	}
	return []dra.DeviceSelector{{CEL: &dra.CELDeviceSelector{Expression: expression}}}
}

// instanceType has the CPUs, memory and pods that documents say every type has, and its GPUs as a slice to come.
func instanceType(m machine) *cloudprovider.InstanceType {
	var offered []cloudprovider.Offering
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		offered = append(offered, cloudprovider.Offering{
			Available: true,
			Price:     m.Price,
			Requirements: karpsched.NewLabelRequirements(map[string]string{
				karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand,
				corev1.LabelTopologyZone:    zone,
			}),
		})
	}
	made := []fake.InstanceTypeOptions{
		fake.WithOfferings(offered...),
		fake.WithResources(corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("192"),
			corev1.ResourceMemory: resource.MustParse("2000Gi"),
			corev1.ResourcePods:   resource.MustParse("250"),
		}),
	}
	if m.GPUs > 0 {
		kind := "gpu"
		attributes := map[dra.QualifiedName]dra.DeviceAttribute{
			"productName": {StringValue: &m.Model},
			"type":        {StringValue: &kind},
		}
		devices := make([]cloudprovider.Device, m.GPUs)
		for i := range devices {
			devices[i] = fake.Device(fmt.Sprintf("gpu-%d", i), attributes)
		}
		made = append(made, fake.WithResourceSliceTemplates(cloudprovider.ResourceSliceTemplate{
			Driver:  unique.Make(gpuDriver),
			Pool:    cloudprovider.ResourcePool{Name: unique.Make(m.Name)},
			Devices: devices,
		}))
	}
	return fake.NewInstanceType(m.Name, made...)
}

func claimOf(c consumer) *dra.ResourceClaim {
	claim := &dra.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: namespace}}
	for i, asked := range c.Requests {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, dra.DeviceRequest{
			Name: fmt.Sprintf("r%d", i),
			Exactly: &dra.ExactDeviceRequest{
				DeviceClassName: gpuDriver,
				AllocationMode:  dra.DeviceAllocationModeExactCount,
				Count:           asked.Count,
				Selectors:       cel(asked.Selector),
			},
		})
	}
	return claim
}

func podOf(c consumer) *corev1.Pod {
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(c.CPU))}
	if c.Memory != "" {
		amounts[corev1.ResourceMemory] = resource.MustParse(c.Memory)
	}
	pod := test.Pod(test.PodOptions{
		ObjectMeta:           metav1.ObjectMeta{Name: c.Name, Namespace: namespace, UID: types.UID(c.Name)},
		ResourceRequirements: corev1.ResourceRequirements{Requests: amounts},
	})
	if len(c.Requests) > 0 {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &c.Name}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
	return pod
}

// solve runs one round. The cheapest type that a node may become is what it costs, as Karpenter launches it.
func solve(asked document) (result, error) {
	ignore := false
	ctx := injection.WithControllerName(context.Background(), "provisioner")
	ctx = options.ToContext(ctx, test.Options(test.OptionsFields{IgnoreDRARequests: &ignore}))
	pool := test.NodePool(karpv1.NodePool{Spec: karpv1.NodePoolSpec{Limits: karpv1.Limits{
		corev1.ResourceCPU: resource.MustParse("100M"), corev1.ResourceMemory: resource.MustParse("100Pi"),
	}}})
	prices, kinds := map[string]float64{}, []*cloudprovider.InstanceType{}
	for _, m := range asked.Types {
		prices[m.Name] = m.Price
		kinds = append(kinds, instanceType(m))
	}
	offered := map[string][]*cloudprovider.InstanceType{pool.Name: kinds}
	pods, api := []*corev1.Pod{}, apiServer{claims: map[types.NamespacedName]*dra.ResourceClaim{}}
	for _, c := range asked.Pods {
		api.claims[types.NamespacedName{Namespace: namespace, Name: c.Name}] = claimOf(c)
		pods = append(pods, podOf(c))
	}
	provider, now := fake.NewCloudProvider(), clock.RealClock{}
	provider.InstanceTypes = kinds
	cluster := state.NewCluster(now, api, provider)
	pools := []*karpv1.NodePool{pool}

	began := time.Now()
	topology, err := scheduling.NewTopology(ctx, api, cluster, nil, pools, offered, pods)
	if err != nil {
		return result{}, err
	}
	inUse := dynamicresources.AllocatedDeviceState{ExclusiveDevices: sets.New[cloudprovider.DeviceID]()}
	allocator := dynamicresources.NewAllocator(nil, inUse, dynamicresources.BuildAttributeBindings(offered), api, nil)
	recorder := events.NewRecorder(&record.FakeRecorder{})
	scheduler := scheduling.NewScheduler(ctx, api, pools, cluster, nil, topology, offered, nil, recorder, now, nil,
		allocator, scheduling.NumConcurrentReconciles(workers))
	limited, done := context.WithTimeout(ctx, round)
	defer done()
	planned, stopped := scheduler.Solve(limited, pods)

	found := result{Seconds: time.Since(began).Seconds(), Nodes: len(planned.NewNodeClaims)}
	if stopped != nil {
		found.Error = stopped.Error()
	}
	for _, node := range planned.NewNodeClaims {
		found.Scheduled += len(node.Pods)
		least := -1.0
		for _, kind := range node.InstanceTypeOptions {
			if price := prices[kind.Name]; least < 0 || price < least {
				least = price
			}
		}
		found.USDPerHour += max(0, least)
	}
	found.Unscheduled = len(pods) - found.Scheduled
	return found, nil
}

func main() {
	var asked document
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatalf("the document on standard input is no workload: %v", err)
	}
	found, err := solve(asked)
	if err != nil {
		log.Fatal(err)
	}
	found.Peer = "karpenter"
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}
