// Package examples holds nothing: each folder below it is a program that runs a model on weights filled by wick, or an
// adapter to a framework.
package examples
