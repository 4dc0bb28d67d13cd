// Reads objects that Foreslice wrote in Kubernetes' wire format, with Kubernetes' own types: one JSON object a line,
// {"kind": "Node", "bytes": BASE64}, answered with the object as JSON, or with {"error": TEXT}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

type question struct {
	Kind  string `json:"kind"`
	Bytes []byte `json:"bytes"`
}

type object interface {
	Unmarshal([]byte) error
	Marshal() ([]byte, error)
}

func answer(line []byte) (any, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	kinds := map[string]object{"Node": &corev1.Node{}, "ResourceSlice": &resourcev1.ResourceSlice{}}
	found, known := kinds[asked.Kind]
	if !known {
		return nil, fmt.Errorf("kind %q", asked.Kind)
	}
	if err := found.Unmarshal(asked.Bytes); err != nil {
		return nil, err
	}
	again, err := found.Marshal()
	if err != nil {
		return nil, err
	}
	return map[string]any{"object": found, "bytes": again}, nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		found, err := answer(lines.Bytes())
		if err != nil {
			found = map[string]string{"error": err.Error()}
		}
		if err := out.Encode(found); err != nil {
			panic(err)
		}
	}
}
