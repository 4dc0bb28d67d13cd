//go:build oracle034

package main

import (
	"encoding/json"

	"k8s.io/dynamic-resource-allocation/structured"

	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// strict is off: an API server drops fields of later releases, such as the values of lists.
const strict = false

// gates reads the names of structured.Features of later releases. 0.34 knows two gates in the place of one, and no lists.
func gates(raw json.RawMessage) (structured.Features, dracel.Features, error) {
	var features struct {
		structured.Features
		DeviceBindingAndStatus bool
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &features); err != nil {
			return features.Features, dracel.Features{}, err
		}
	}
	features.DeviceBinding, features.DeviceStatus = features.DeviceBindingAndStatus, features.DeviceBindingAndStatus
	return features.Features, dracel.Features{EnableConsumableCapacity: features.ConsumableCapacity}, nil
}

// nodeError is false: 0.34 does not tell such errors from others.
func nodeError(error) bool {
	return false
}
