"""The record formats read a second time: slow, plain, from the contract alone, sharing no code with the product."""
