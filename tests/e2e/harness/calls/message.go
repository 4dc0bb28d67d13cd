package main

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers are those of kubernetes/autoscaler 55c37cd5, cloudprovider/externalgrpc/protos/externalgrpc.proto.

// raw passes messages on as bytes: the answers are read by parse.
type raw struct{}

func (raw) Name() string                      { return "proto" }
func (raw) Marshal(value any) ([]byte, error) { return *value.(*[]byte), nil }
func (raw) Unmarshal(content []byte, value any) error {
	*value.(*[]byte) = append([]byte(nil), content...)
	return nil
}

// fields are what a message has, by number: bytes as they are, numbers as varints.
type fields struct {
	bytes   map[protowire.Number][][]byte
	numbers map[protowire.Number]uint64
}

func (f fields) text(number protowire.Number) string {
	if found := f.bytes[number]; len(found) > 0 {
		return string(found[len(found)-1])
	}
	return ""
}

func (f fields) has(number protowire.Number) bool { return len(f.bytes[number]) > 0 }

func (f fields) number(number protowire.Number) int { return int(int32(f.numbers[number])) }

func parse(content []byte) (fields, error) {
	found := fields{map[protowire.Number][][]byte{}, map[protowire.Number]uint64{}}
	for len(content) > 0 {
		number, kind, size := protowire.ConsumeTag(content)
		if size < 0 {
			return found, protowire.ParseError(size)
		}
		content = content[size:]
		switch kind {
		case protowire.BytesType:
			value, read := protowire.ConsumeBytes(content)
			if read < 0 {
				return found, protowire.ParseError(read)
			}
			found.bytes[number] = append(found.bytes[number], value)
			size = read
		case protowire.VarintType:
			value, read := protowire.ConsumeVarint(content)
			if read < 0 {
				return found, protowire.ParseError(read)
			}
			found.numbers[number] = value
			size = read
		default:
			if size = protowire.ConsumeFieldValue(number, kind, content); size < 0 {
				return found, fmt.Errorf("field %d: %w", number, protowire.ParseError(size))
			}
		}
		content = content[size:]
	}
	return found, nil
}

func text(to []byte, number protowire.Number, value string) []byte {
	if value == "" {
		return to
	}
	return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), value)
}

func integer(to []byte, number protowire.Number, value int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), uint64(int64(value)))
}

func message(to []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), content)
}

func ofGroup(id string) []byte { return text(nil, 1, id) }

func ofNode(found node) []byte { return text(text(nil, 1, found.ProviderID), 2, found.Name) }

// options are NodeGroupAutoscalingOptionsRequest with some defaults: a threshold as double, a duration.
func options(id string) []byte {
	threshold := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 0x3FE0000000000000)
	provision := integer(nil, 1, 15*60)
	return message(ofGroup(id), 2, message(threshold, 10, provision))
}
