//go:build weights

package main

// load is the function of weights.go, which wick pack writes beside the record that it embeds.
var load = LoadSqueezeNet
