package jobapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ringlight/planner/job"
)

var update = flag.Bool("update", false, "rewrite openapi.json")

// values are the words that a text may be.
var values = map[reflect.Type][]string{
	reflect.TypeFor[job.Prefer]():   {string(job.Compact), string(job.Spread), string(job.CrossToR)},
	reflect.TypeFor[job.Policy]():   {string(job.Wait), string(job.Shrink), string(job.Fail)},
	reflect.TypeFor[job.Standing](): {string(job.Well), string(job.Silent), string(job.Lost), string(job.Drained)},
	reflect.TypeFor[job.State]():    {string(job.Waiting), string(job.Reserved), string(job.Forming), string(job.Ready), string(job.Degraded), string(job.Repairing), string(job.Down), string(job.Released)},
}

// schema describes a type as encoding/json writes it; named ones once.
func schema(t reflect.Type, named map[string]any) any {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case t == reflect.TypeFor[job.GPU]():
		return map[string]any{"type": "array", "description": "host and GPU", "minItems": 2, "maxItems": 2, "items": map[string]any{}}
	case t == reflect.TypeFor[job.Name]():
		return map[string]any{"description": "a node's name or number", "oneOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "integer"}}}
	case values[t] != nil:
		return map[string]any{"type": "string", "enum": values[t]}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schema(t.Elem(), named)}
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := schema(t.Elem(), named)
		if m, ok := s.(map[string]any); ok && m["$ref"] == nil {
			m["type"] = []any{m["type"], "null"}
		}
		return s
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schema(t.Elem(), named)}
	case reflect.Array:
		return map[string]any{"type": "array", "items": schema(t.Elem(), named), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Struct:
		name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if named[name] == nil {
			named[name] = true // it may hold itself
			properties := map[string]any{}
			var required []string
			for i := range t.NumField() {
				if !t.Field(i).IsExported() {
					continue
				}
				key, rest, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				if t.Field(i).Anonymous { // its keys are the outer one's
					schema(t.Field(i).Type, named)
					of := named[t.Field(i).Name].(map[string]any)
					maps.Copy(properties, of["properties"].(map[string]any))
					if more, ok := of["required"].([]string); ok {
						required = append(required, more...)
					}
					continue
				}
				if properties[key] = schema(t.Field(i).Type, named); !strings.Contains(rest, "omitempty") {
					required = append(required, key)
				}
			}
			s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
			if name == "Event" { // what it is called is a plain text in Go
				properties["event"].(map[string]any)["enum"] = append(values[reflect.TypeFor[job.State]()], job.NodeLost, job.Replaced, job.Left, job.Restored)
				required = slices.DeleteFunc(required, func(key string) bool { return reflect.TypeFor[job.HandOver]() == keyOf(t, key) })
			}
			if name == "Wish" {
				s["oneOf"] = []any{map[string]any{"required": []string{"tp"}}, map[string]any{"required": []string{"circuits"}}}
			}
			if required != nil {
				s["required"] = required
			}
			named[name] = s
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	return map[string]any{"type": "integer"}
}

// keyOf is the embedded type that a key of a struct is of, nil where it is its own.
func keyOf(t reflect.Type, key string) reflect.Type {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous {
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			for k := range of.NumField() {
				if name, _, _ := strings.Cut(of.Field(k).Tag.Get("json"), ","); name == key {
					return of
				}
			}
		}
	}
	return nil
}

// statuses are the refusals that a route may answer with, and why.
func statuses(r *route) map[string]string {
	out := map[string]string{"403": "the certificate may not do that", "503": "the planner is not in service, or too many watch; ask again"}
	if len(r.query) > 0 || r.body != nil || strings.Contains(r.path, "{") || r.method != "GET" {
		out["400"] = "something is not known, or beyond its limit"
	}
	if strings.Contains(r.path, "{") {
		out["404"] = "there is no such job, file or router"
	}
	if r.method != "GET" {
		out["504"] = "the planner did not answer in time; ask again"
	}
	if strings.Contains(r.path, "{") && !strings.HasSuffix(r.path, "{id}") || r.method != "GET" {
		out["409"] = "the job, or its owner, stands otherwise"
	}
	if r.revised {
		out["412"] = "the job is not at the revision of If-Match"
	}
	if r.body != nil {
		out["413"] = "the body is too long"
	}
	return out
}

func described() []byte {
	named := map[string]any{}
	paths := map[string]map[string]any{}
	text := map[string]any{"type": "string"}
	named["Refusal"] = map[string]any{"type": "object", "required": []string{"error"}, "properties": map[string]any{"error": map[string]any{
		"type": "object", "required": []string{"code", "message"}, "properties": map[string]any{"code": text, "field": text, "limit": text, "message": text}}}}
	etag := map[string]any{"ETag": map[string]any{"description": "the job's revision: its generation, quoted", "schema": text}}
	for _, r := range routes {
		op := map[string]any{"summary": r.short, "operationId": r.name}
		var parameters []any
		for _, m := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(r.path, -1) {
			parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
		for _, q := range r.query {
			parameters = append(parameters, map[string]any{"name": q.name, "in": "query", "description": q.about, "schema": map[string]any{"type": "string"}})
		}
		if r.revised {
			parameters = append(parameters, map[string]any{"name": "If-Match", "in": "header", "description": "an ETag of the job: refuse where it is at another revision", "schema": text})
		}
		if parameters != nil {
			op["parameters"] = parameters
		}
		if r.body != nil {
			op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": schema(reflect.TypeOf(r.body), named)}}}
		}
		content := map[string]any{"text/plain": map[string]any{}}
		if r.answer != nil {
			content = map[string]any{"application/json": map[string]any{"schema": schema(reflect.TypeOf(r.answer), named)}}
		}
		for _, q := range r.query { // other answers to the same question
			switch q.name {
			case "dry_run":
				content["application/json"] = map[string]any{"schema": map[string]any{"oneOf": []any{schema(reflect.TypeOf(r.answer), named), schema(reflect.TypeFor[job.Trial](), named)}}}
			case "format":
				content["application/yaml"], content["text/plain"] = map[string]any{}, map[string]any{}
			case "watch":
				content["application/json"] = map[string]any{"schema": map[string]any{"oneOf": []any{schema(reflect.TypeOf(r.answer), named), schema(reflect.TypeFor[news](), named)}}}
				content["text/event-stream"] = map[string]any{"schema": schema(reflect.TypeFor[job.Event](), named)}
			}
		}
		done := map[string]any{"description": "done", "content": content}
		if _, job := r.answer.(job.View); job {
			done["headers"] = etag
		}
		responses := map[string]any{"200": done}
		for status, why := range statuses(&r) { // any order: a map
			responses[status] = map[string]any{"description": why, "content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Refusal"}}}}
		}
		op["responses"] = responses
		if paths[r.path] == nil {
			paths[r.path] = map[string]any{}
		}
		paths[r.path][strings.ToLower(r.method)] = op
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	_ = e.Encode(map[string]any{"openapi": "3.1.0", "info": map[string]any{"title": "Ringlight jobs", "version": "1"}, "paths": paths,
		"security":   []any{map[string]any{}, map[string]any{"certificate": []any{}}},
		"components": map[string]any{"schemas": named, "securitySchemes": map[string]any{"certificate": map[string]any{"type": "mutualTLS", "description": "beyond loopback and the unix socket"}}}})
	return b.Bytes()
}

// Goal: openapi.json is what the code serves.
// Method: it is made from the table of routes and the types of requests and
// answers, and compared.
func TestDescriptionIsTheCode(t *testing.T) {
	want := described()
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(openapi, want) {
		t.Error("openapi.json is not what the code serves: go test ./planner/jobapi -update")
	}
}
