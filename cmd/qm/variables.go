package main

import (
	"fmt"
	"reflect"

	"qm/httpapi"
)

// Variables is the configuration in force, as health shows it, in the order of [Config]. Numbers, switches and lists of networks are no
// secrets; of texts only those are told that say so.
func (c *Config) Variables() []httpapi.Variable {
	plain, err := LoadConfig(nil)
	if err != nil {
		panic(err) // an empty environment is a good one
	}
	if c.AdminKey != DefaultAdminKey {
		plain.Host = "" // then the default is all addresses
	}
	was, is := reflect.ValueOf(plain).Elem(), reflect.ValueOf(c).Elem()
	list := make([]httpapi.Variable, is.NumField())
	for i := range list {
		field := is.Type().Field(i)
		v := &list[i]
		v.Name = field.Tag.Get("env")
		v.Default = reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface())
		v.Hidden = field.Type.Kind() == reflect.String && field.Tag.Get("show") != "yes"
		switch value := is.Field(i).Interface().(type) {
		case Switch:
			v.Value = "0"
			if value {
				v.Value = "1"
			}
		default:
			v.Value = fmt.Sprint(value)
		}
		if v.Hidden && v.Value != "" {
			v.Value = "set"
		}
	}
	return list
}
