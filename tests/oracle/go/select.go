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

// device is what an expression is asked about.
type device struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

// selection is the question whether a CEL selector matches a device, or each of several.
type selection struct {
	Expression string   `json:"expression"`
	Device     device   `json:"device"`
	Devices    []device `json:"devices"`
	New        bool     `json:"new"`      // compile as the API server does for new objects
	Estimate   bool     `json:"estimate"` // estimate the worst case, too
}

type selectionAnswer struct {
	Outcome            string       `json:"outcome"` // true, false, compile_error, runtime_error, timeout or panic; of several: decided
	Error              string       `json:"error,omitempty"`
	Cost               *uint64      `json:"cost,omitempty"`
	Answers            []evaluation `json:"answers,omitempty"` // in the order of the devices
	Estimate           *uint64      `json:"estimate,omitempty"`
	CompileNanoseconds int64        `json:"compileNanoseconds"`
	Nanoseconds        int64        `json:"nanoseconds"`
}

type evaluation struct {
	Outcome string  `json:"outcome"` // true, false, runtime_error or timeout
	Error   string  `json:"error,omitempty"`
	Cost    *uint64 `json:"cost,omitempty"`
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
	if len(s.Devices) > 0 {
		found.Outcome = "decided"
		found.Answers = make([]evaluation, len(s.Devices))
		found.Nanoseconds = timed(repeat, func() {
			for i, asked := range s.Devices {
				found.Answers[i] = evaluate(ctx, program, asked)
			}
		})
		if ctx.Err() != nil {
			found.Outcome = "timeout"
		}
		return found
	}
	var only evaluation
	found.Nanoseconds = timed(repeat, func() { only = evaluate(ctx, program, s.Device) })
	found.Outcome, found.Error, found.Cost = only.Outcome, only.Error, only.Cost
	return found
}

func evaluate(ctx context.Context, program dracel.CompilationResult, asked device) evaluation {
	matches, details, err := program.DeviceMatches(ctx, dracel.Device{
		Driver: asked.Driver, AllowMultipleAllocations: asked.AllowMultipleAllocations,
		Attributes: asked.Attributes, Capacity: asked.Capacity,
	})
	found := evaluation{Outcome: fmt.Sprint(matches)}
	switch {
	case ctx.Err() != nil:
		found.Outcome = "timeout"
	case err != nil:
		found.Outcome, found.Error = "runtime_error", err.Error()
	}
	if details != nil {
		found.Cost = details.ActualCost()
	}
	return found
}
