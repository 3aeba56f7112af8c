package mzi

// Reach is how many heaters to either side a cell's crosstalk is known for.
const Reach = 3
