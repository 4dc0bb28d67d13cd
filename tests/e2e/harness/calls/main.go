// Makes the calls of Cluster Autoscaler's cloud provider externalgrpc, as its loop makes them. One JSON object a line is
// read, and answered with one: {"start": CONFIG} is a process that starts, {"loop": WORLD} one loop, {"connect": true}
// waits until a lost connection is there again, {"increase": {"id": …, "delta": …}} and {"delete": {"id": …, "nodes": […]}}
// are single calls, as of one that repeats itself.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

type line struct {
	Start    *config `json:"start"`
	Loop     *world  `json:"loop"`
	Increase *struct {
		ID    string `json:"id"`
		Delta int    `json:"delta"`
	} `json:"increase"`
	Connect bool `json:"connect"`
	Delete  *struct {
		ID    string `json:"id"`
		Nodes []node `json:"nodes"`
	} `json:"delete"`
}

func (a *autoscaler) single(err error) any {
	calls := a.provider.calls
	a.provider.calls = nil
	return map[string]any{"code": status.Code(err).String(), "message": status.Convert(err).Message(), "calls": calls}
}

// connected waits until the connection is made again, for at most half a minute.
func connected(conn *grpc.ClientConn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		conn.Connect()
		if !conn.WaitForStateChange(ctx, state) {
			return false
		}
	}
	return true
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	var running *autoscaler
	for lines.Scan() {
		var asked line
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		var answer any
		switch {
		case asked.Start != nil:
			if running != nil {
				running.provider.conn.Close()
			}
			made, err := dial(*asked.Start)
			if err != nil {
				panic(err)
			}
			running = started(made)
			answer = map[string]any{}
		case asked.Connect:
			answer = map[string]bool{"connected": connected(running.provider.conn)}
		case asked.Loop != nil:
			answer = running.loop(*asked.Loop)
		case asked.Increase != nil:
			answer = running.single(running.provider.increase(asked.Increase.ID, asked.Increase.Delta))
		case asked.Delete != nil:
			answer = running.single(running.provider.delete(asked.Delete.ID, asked.Delete.Nodes))
		}
		if err := out.Encode(answer); err != nil {
			panic(err)
		}
	}
}
