module infra.internal/programs/pause

go 1.26.0
