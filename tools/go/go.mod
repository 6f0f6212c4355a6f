module echoless

go 1.24
