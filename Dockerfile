# daycare in a container; docs/install.md says how to build and run it.
FROM golang:1.26.5-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -tags goolm -trimpath -buildvcs=false -ldflags "-s -w" -o /out/daycare ./cmd/daycare

FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home daycare && install -d -o daycare -g daycare -m 0700 /workspace
COPY --from=build /out/daycare /usr/local/bin/daycare
USER daycare
WORKDIR /workspace
VOLUME /workspace
HEALTHCHECK --start-period=30s CMD daycare status --json | grep -q '"running":true'
ENTRYPOINT ["daycare"]
CMD ["start"]
