package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// selection is the question whether a CEL selector matches a device.
type selection struct {
	Expression string `json:"expression"`
	Device     struct {
		Driver                   string                                                    `json:"driver"`
		AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
		Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
		Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
	} `json:"device"`
	New      bool `json:"new"`      // compile as the API server does for new objects
	Estimate bool `json:"estimate"` // estimate the worst case, too
}

type selectionAnswer struct {
	Outcome            string  `json:"outcome"` // true, false, compile_error, runtime_error or panic
	Error              string  `json:"error,omitempty"`
	Cost               *uint64 `json:"cost,omitempty"`
	Estimate           *uint64 `json:"estimate,omitempty"`
	CompileNanoseconds int64   `json:"compileNanoseconds"`
	Nanoseconds        int64   `json:"nanoseconds"`
}

func (s *selection) answer(features dracel.Features, limit time.Duration, repeat int) (found selectionAnswer) {
	defer func() {
		if reason := recover(); reason != nil {
			found = selectionAnswer{Outcome: "panic", Error: fmt.Sprint(reason)}
		}
	}()
	options := dracel.Options{DisableCostEstimation: !s.Estimate}
	if s.New {
		options.EnvType = ptr.To(environment.NewExpressions)
	}
	var program dracel.CompilationResult
	found.CompileNanoseconds = timed(repeat, func() {
		program = dracel.GetCompiler(features).CompileCELExpression(s.Expression, options)
	})
	if program.Error != nil {
		found.Outcome, found.Error = "compile_error", program.Error.Error()
		return found
	}
	if s.Estimate {
		found.Estimate = &program.MaxCost
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	found.Nanoseconds = timed(repeat, func() {
		matches, details, err := program.DeviceMatches(ctx, dracel.Device{
			Driver: s.Device.Driver, AllowMultipleAllocations: s.Device.AllowMultipleAllocations,
			Attributes: s.Device.Attributes, Capacity: s.Device.Capacity,
		})
		found.Outcome = fmt.Sprint(matches)
		if err != nil {
			found.Outcome, found.Error = "runtime_error", err.Error()
		}
		if details != nil {
			found.Cost = details.ActualCost()
		}
	})
	return found
}
