# syntax=docker/dockerfile:1
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# No C library: the binaries run on any Linux of the platform.
ENV CGO_ENABLED=0
RUN go build -trimpath -buildvcs=false -ldflags='-s -w' -o /out/ ./cmd/qm ./cmd/qm-replay

# Alpine rather than nothing: it brings the certificates for outgoing TLS, and wget for the health check.
FROM alpine:3
COPY --from=build /out/qm /out/qm-replay /usr/local/bin/
# A number, so that an orchestrator can see that it is not root.
USER 65532:65532
EXPOSE 8080
# PORT is the server's own variable; /healthz is 503 while it cannot make a join durable.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD wget -q -O /dev/null "http://127.0.0.1:${PORT:-8080}/healthz" || exit 1
# SIGTERM, which is what "docker stop" sends, ends the server in order.
ENTRYPOINT ["/usr/local/bin/qm"]
