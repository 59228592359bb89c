// Program types prints the types that the kinds on its standard input consist of, one line each, in the notation
// of engine/kubeapi/schema/types/parsing.py.
//
// A line of the input is an apiVersion, a kind, and the name that the table gives to the package of its Go type.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	apply "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	merge "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Types that JSON or protobuf encode in a form of their own.
var forms = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():            "time",
	reflect.TypeFor[meta.MicroTime]():       "micro",
	reflect.TypeFor[meta.Duration]():        "str",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "intstr",
	reflect.TypeFor[meta.FieldsV1]():        "any",
	reflect.TypeFor[runtime.RawExtension](): "any",
	// A deliberate deviation: custom_kinds checks the schema of a custom kind, as a whole.
	reflect.TypeFor[apiextensions.JSONSchemaProps](): "any",
}

var kinds = map[reflect.Kind]string{
	reflect.String: "str",
	reflect.Bool:   "bool",
	reflect.Int32:  "int32",
	reflect.Int64:  "int64",
}

// A table collects lines by package and type name.
type table struct {
	packages map[string]string
	schemas  []*merge.Schema
	lines    map[string]map[string]string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensions.AddToScheme, metrics.AddToScheme,
	} {
		if err := add(known); err != nil {
			return err
		}
	}
	schemas, err := mergeSchemas(known)
	if err != nil {
		return err
	}
	made := table{packages: map[string]string{}, schemas: schemas, lines: map[string]map[string]string{}}
	var roots []reflect.Type
	for words := bufio.NewScanner(os.Stdin); words.Scan(); {
		var apiVersion, kind, name string
		if _, err := fmt.Sscan(words.Text(), &apiVersion, &kind, &name); err != nil {
			return fmt.Errorf("%q: %w", words.Text(), err)
		}
		object, err := known.New(schema.FromAPIVersionAndKind(apiVersion, kind))
		if err != nil {
			return err
		}
		root := reflect.TypeOf(object).Elem()
		made.packages[root.PkgPath()] = name
		roots = append(roots, root)
	}
	for _, root := range roots {
		if err := made.add(root, nil); err != nil {
			return err
		}
	}
	made.print()
	return nil
}

// mergeSchemas returns the schemas of server-side apply: those of most kinds, and of CustomResourceDefinitions.
func mergeSchemas(known *runtime.Scheme) ([]*merge.Schema, error) {
	pod := &core.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	typed, err := apply.NewTypeConverter(known).ObjectToTyped(pod)
	if err != nil {
		return nil, err
	}
	definitions := map[string]*spec.Schema{}
	for name, definition := range openapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/components/schemas/" + name)
	}) {
		definitions[name] = &definition.Schema
	}
	converted, err := schemaconv.ToSchemaFromOpenAPI(definitions, false)
	return []*merge.Schema{typed.Schema(), converted}, err
}

// merged returns how server-side apply merges a type; nil if it does not know it.
func (t *table) merged(of reflect.Type) *merge.Map {
	named, ok := reflect.New(of).Interface().(interface{ OpenAPIModelName() string })
	if !ok {
		return nil
	}
	for _, each := range t.schemas {
		if found, ok := each.FindNamedType(named.OpenAPIModelName()); ok {
			return found.Map
		}
	}
	return nil
}

// add writes the line of a struct and of those that it refers to; outer is that of the struct that inlines it.
func (t *table) add(of reflect.Type, outer *merge.Map) error {
	name, ok := t.packages[of.PkgPath()]
	if !ok {
		return fmt.Errorf("no kind on the input names the package of %s.%s", of.PkgPath(), of.Name())
	}
	if _, ok := t.lines[name][of.Name()]; ok {
		return nil
	}
	if t.lines[name] == nil {
		t.lines[name] = map[string]string{}
	}
	t.lines[name][of.Name()] = ""
	head := of.Name()
	how := t.merged(of)
	if how == nil {
		how = outer
	} else if how.ElementRelationship == merge.Atomic {
		head += "%"
	}
	var fields []string
	for i := range of.NumField() {
		text, err := t.field(of.Field(i), of.PkgPath(), how)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", name, of.Name(), err)
		}
		fields = append(fields, text)
	}
	t.lines[name][of.Name()] = strings.TrimSpace(head + " = " + strings.Join(fields, ", "))
	return nil
}

func (t *table) field(field reflect.StructField, from string, outer *merge.Map) (string, error) {
	if field.Type == reflect.TypeFor[meta.TypeMeta]() {
		return "apiVersion:str, kind:str", nil
	}
	tag := strings.Split(field.Tag.Get("json"), ",")
	number := ""
	if parts := strings.Split(field.Tag.Get("protobuf"), ","); len(parts) > 1 {
		number = parts[1] + ":"
	}
	if tag[0] == "" {
		text, err := t.text(field.Type, from, outer)
		return "_:" + number + text, err
	}
	var how merge.StructField
	if outer != nil {
		how, _ = outer.FindField(tag[0])
	}
	text, err := t.typeOf(field, from, how.Type)
	if err != nil {
		return "", fmt.Errorf("%s: %w", tag[0], err)
	}
	if field.Type.Kind() == reflect.Pointer {
		text += "?"
	} else if !strings.Contains(field.Tag.Get("json"), ",omit") {
		text += "!"
	}
	// The schema has a zero default for each field that is always written; those say nothing.
	switch value := how.Default.(type) {
	case string, int, float64:
		if !reflect.ValueOf(value).IsZero() {
			text += fmt.Sprintf("=%v", value)
		}
	}
	return tag[0] + ":" + number + text, nil
}

// typeOf returns the type of a field with its list relation and merge key, without the suffixes of presence.
func (t *table) typeOf(field reflect.StructField, from string, how merge.TypeRef) (string, error) {
	text, err := t.text(field.Type, from, nil)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(text, "[") {
		if list := how.Inlined.List; list != nil && list.ElementRelationship == merge.Associative {
			keys := "*"
			if len(list.Keys) > 0 {
				keys = strings.Join(list.Keys, "+")
			}
			text = strings.TrimSuffix(text, "]") + "/" + keys + "]"
		}
		if strings.Contains(field.Tag.Get("patchStrategy"), "merge") {
			key := field.Tag.Get("patchMergeKey")
			if key == "" {
				key = "*"
			}
			text = strings.TrimSuffix(text, "]") + "~" + key + "]"
		}
	}
	if one := how.Inlined.Map; one != nil && one.ElementRelationship == merge.Atomic {
		text += "%"
	}
	if own := how.ElementRelationship; own != nil {
		if *own != merge.Separable {
			return "", fmt.Errorf("the notation has no suffix for a type that is %s here only", *own)
		}
		text += "^"
	}
	return text, nil
}

// text returns the notation of a Go type, and adds the structs that it refers to.
func (t *table) text(of reflect.Type, from string, outer *merge.Map) (string, error) {
	if form, ok := forms[of]; ok {
		return form, nil
	}
	if form, ok := kinds[of.Kind()]; ok {
		return form, nil
	}
	switch of.Kind() {
	case reflect.Pointer:
		return t.text(of.Elem(), from, outer)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		item, err := t.text(of.Elem(), from, nil)
		return "[" + item + "]", err
	case reflect.Map:
		value, err := t.text(of.Elem(), from, nil)
		return "{" + value + "}", err
	case reflect.Struct:
		err := t.add(of, outer)
		if of.PkgPath() == from {
			return of.Name(), err
		}
		return t.packages[of.PkgPath()] + "." + of.Name(), err
	}
	return "", fmt.Errorf("the notation has no form for %s", of)
}

func (t *table) print() {
	for _, name := range sorted(t.lines) {
		fmt.Println("package " + name)
		for _, each := range sorted(t.lines[name]) {
			fmt.Println(t.lines[name][each])
		}
	}
}

func sorted[T any](of map[string]T) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
