package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

const service = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"

// config is what the file of --cloud-config says. Older: a release that does not read resourceSliceBytes.
type config struct {
	Address string  `json:"address"`
	Cert    string  `json:"cert"`
	Key     string  `json:"key"`
	CACert  string  `json:"cacert"`
	Timeout float64 `json:"timeout"` // seconds of a call; 5 if it is not given
	Older   bool    `json:"older"`
}

type node struct {
	Name       string `json:"name"`
	ProviderID string `json:"providerID"`
	Ready      bool   `json:"ready"`
}

type template struct {
	Node   *corev1.Node                `json:"node"`
	Slices []*resourcev1.ResourceSlice `json:"slices"`
}

type instance struct {
	ID      string `json:"id"`
	State   int    `json:"state"`
	Code    string `json:"code,omitempty"`
	Class   int    `json:"class,omitempty"`
	Message string `json:"message,omitempty"`
}

type group struct {
	ID       string `json:"id"`
	Min      int    `json:"min"`
	Max      int    `json:"max"`
	template *template
}

// provider is the cloud provider externalgrpc (kubernetes/autoscaler 55c37cd5): what it asks and what it remembers. Groups,
// the template of each and the groups of nodes are kept until the next Refresh, the GPU label for ever; failures are not.
type provider struct {
	config   config
	conn     *grpc.ClientConn
	groups   []*group
	ofNodes  map[string]string
	gpuLabel *string
	calls    []string // since they were last taken
}

func dial(given config) (*provider, error) {
	host, _, err := net.SplitHostPort(given.Address)
	if err != nil {
		return nil, err
	}
	cert, err := tls.LoadX509KeyPair(given.Cert, given.Key)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(given.CACert)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", given.CACert)
	}
	secure := credentials.NewTLS(&tls.Config{ServerName: host, Certificates: []tls.Certificate{cert}, RootCAs: pool})
	// The connection is made with the first call, as with grpc.Dial.
	conn, err := grpc.NewClient(given.Address, grpc.WithTransportCredentials(secure))
	if err != nil {
		return nil, err
	}
	if given.Timeout == 0 {
		given.Timeout = 5
	}
	return &provider{config: given, conn: conn, ofNodes: map[string]string{}}, nil
}

func (p *provider) call(method, told string, asked []byte) (fields, error) {
	timeout := time.Duration(p.config.Timeout * float64(time.Second))
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var answer []byte
	err := p.conn.Invoke(ctx, service+method, &asked, &answer, grpc.ForceCodec(raw{}))
	line := method
	if told != "" {
		line += " " + told
	}
	if err != nil {
		line += " -> " + status.Code(err).String()
	}
	p.calls = append(p.calls, line)
	if err != nil {
		return fields{}, err
	}
	return parse(answer)
}

func (p *provider) refresh() error {
	p.groups, p.ofNodes = nil, map[string]string{}
	_, err := p.call("Refresh", "", nil)
	return err
}

// nodeGroups is empty after a failure, which is not remembered.
func (p *provider) nodeGroups() []*group {
	if p.groups != nil {
		return p.groups
	}
	answer, err := p.call("NodeGroups", "", nil)
	if err != nil {
		return nil
	}
	found := []*group{}
	for _, content := range answer.bytes[1] {
		read, err := parse(content)
		if err != nil {
			return nil
		}
		found = append(found, &group{ID: read.text(1), Min: read.number(2), Max: read.number(3)})
	}
	p.groups = found
	return found
}

// groupOf is empty for nodes that are none of ours; that is not remembered.
func (p *provider) groupOf(found node) (string, error) {
	key := found.Name + found.ProviderID
	if known, is := p.ofNodes[key]; is {
		return known, nil
	}
	answer, err := p.call("NodeGroupForNode", found.Name, message(nil, 1, ofNode(found)))
	if err != nil {
		return "", err
	}
	read, err := parse([]byte(answer.text(1)))
	if id := read.text(1); err == nil && id != "" {
		p.ofNodes[key] = id
		return id, nil
	}
	return "", err
}

func (p *provider) label() string {
	if p.gpuLabel == nil {
		answer, err := p.call("GPULabel", "", nil)
		if err != nil {
			return ""
		}
		found := answer.text(1)
		p.gpuLabel = &found
	}
	return *p.gpuLabel
}

func (p *provider) targetSize(of *group) (int, error) {
	answer, err := p.call("NodeGroupTargetSize", of.ID, ofGroup(of.ID))
	return answer.number(1), err
}

func (p *provider) nodes(of *group) ([]instance, error) {
	answer, err := p.call("NodeGroupNodes", of.ID, ofGroup(of.ID))
	if err != nil {
		return nil, err
	}
	found := []instance{}
	for _, content := range answer.bytes[1] {
		read, err := parse(content)
		if err != nil {
			return nil, err
		}
		state, err := parse([]byte(read.text(2)))
		if err != nil {
			return nil, err
		}
		one := instance{ID: read.text(1), State: state.number(1)}
		failure, err := parse([]byte(state.text(2)))
		if err != nil {
			return nil, err
		}
		// Without a state the status is nil, and without a code there is no error.
		if one.State != 0 && failure.text(1) != "" {
			one.Code, one.Message, one.Class = failure.text(1), failure.text(2), failure.number(3)
		}
		found = append(found, one)
	}
	return found, nil
}

func (p *provider) templateOf(of *group) (*template, error) {
	if of.template != nil {
		return of.template, nil
	}
	answer, err := p.call("NodeGroupTemplateNodeInfo", of.ID, ofGroup(of.ID))
	if err != nil {
		return nil, err
	}
	found := &template{Slices: []*resourcev1.ResourceSlice{}}
	if answer.has(2) {
		found.Node = &corev1.Node{}
		if err := found.Node.Unmarshal([]byte(answer.text(2))); err != nil {
			return nil, err
		}
	}
	if !p.config.Older {
		for _, content := range answer.bytes[3] {
			piece := &resourcev1.ResourceSlice{}
			if err := piece.Unmarshal(content); err != nil {
				return nil, err
			}
			found.Slices = append(found.Slices, piece)
		}
	}
	of.template = found
	return found, nil
}

// hasOptions says whether the group has options of its own; UNIMPLEMENTED means that it has none.
func (p *provider) hasOptions(of *group) (bool, error) {
	answer, err := p.call("NodeGroupGetOptions", of.ID, options(of.ID))
	if status.Code(err) == codes.Unimplemented {
		return false, nil
	}
	return answer.has(1), err
}

func (p *provider) increase(id string, delta int) error {
	_, err := p.call("NodeGroupIncreaseSize", fmt.Sprintf("%s %d", id, delta), text(integer(nil, 1, delta), 2, id))
	return err
}

func (p *provider) delete(id string, nodes []node) error {
	var asked []byte
	told := id
	for _, one := range nodes {
		asked = message(asked, 1, ofNode(one))
		told += " " + one.ProviderID
	}
	_, err := p.call("NodeGroupDeleteNodes", told, text(asked, 2, id))
	return err
}
