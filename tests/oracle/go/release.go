//go:build !oracle034

package main

import (
	"encoding/json"
	"errors"

	"k8s.io/dynamic-resource-allocation/structured"

	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// strict refuses questions with fields that the release does not know.
const strict = true

// gates reads the names of structured.Features; names that a version does not know are ignored, so that one case serves
// several versions. In 1.36 kube-scheduler tells only the CEL environment about list attributes, hence a name for that.
func gates(raw json.RawMessage) (structured.Features, dracel.Features, error) {
	var features struct {
		structured.Features
		CELListTypeAttributes bool
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &features); err != nil {
			return features.Features, dracel.Features{}, err
		}
	}
	return features.Features, dracel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes || features.CELListTypeAttributes,
	}, nil
}

// nodeError says whether the node is to blame, rather than the claims.
func nodeError(err error) bool {
	return errors.Is(err, structured.ErrFailedAllocationOnNode)
}
