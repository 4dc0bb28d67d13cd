// Command oracle answers questions with Kubernetes' own code for Dynamic Resource Allocation, so that the simulator can
// be compared with it: one JSON question per line on standard input, one JSON answer per line on standard output.
//
// A question holds either "allocate" (see allocate.go) or "select" (see select.go). Answers carry the nanoseconds the
// library itself needed, without the reading and writing of JSON, measured over "repeat" runs (the median).
//
// What differs between the releases of the library is in release.go and, with the build tag oracle034, release034.go.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

const longestLine = 1 << 28

type question struct {
	Allocate *allocation     `json:"allocate"`
	Select   *selection      `json:"select"`
	Features json.RawMessage `json:"features"`
	Seconds  float64         `json:"seconds"`
	Repeat   int             `json:"repeat"`
}

type refusal struct {
	Outcome string `json:"outcome"` // bad_case
	Error   string `json:"error"`
}

func main() {
	klog.SetLogger(klog.Logger{}) // silent
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), longestLine)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for in.Scan() {
		if err := encoder.Encode(answer(in.Bytes())); err != nil {
			panic(err)
		}
		if err := out.Flush(); err != nil {
			return // the other side is gone
		}
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}

func answer(line []byte) any {
	var asked question
	decoder := json.NewDecoder(bytes.NewReader(line))
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(&asked); err != nil {
		return refusal{"bad_case", err.Error()}
	}
	// The API server prints what it read, and the scheduler reads that: quantities change their form.
	var stored question
	if text, err := json.Marshal(asked); err != nil || json.Unmarshal(text, &stored) != nil {
		return refusal{"bad_case", "cannot be stored"}
	}
	asked = stored
	features, celFeatures, err := gates(asked.Features)
	limit := time.Duration(asked.Seconds * float64(time.Second))
	switch {
	case err != nil:
		return refusal{"bad_case", err.Error()}
	case limit <= 0:
		return refusal{"bad_case", "seconds: the limit for one answer is missing"}
	case asked.Allocate != nil:
		return asked.Allocate.answer(features, celFeatures, limit, asked.Repeat)
	case asked.Select != nil:
		return asked.Select.answer(celFeatures, limit, asked.Repeat)
	}
	return refusal{"bad_case", "neither allocate nor select"}
}

// timed runs something at least once and returns the median of the times, in nanoseconds.
func timed(repeat int, run func()) int64 {
	times := make([]int64, max(repeat, 1))
	for i := range times {
		start := time.Now()
		run()
		times[i] = time.Since(start).Nanoseconds()
	}
	slices.Sort(times)
	return times[len(times)/2]
}
