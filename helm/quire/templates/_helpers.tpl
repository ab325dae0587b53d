{{/* Names */}}

{{- define "quire.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name, and the chart's where that does not say it already; 53, so that -headless and -test fit behind it. */}}
{{- define "quire.fullname" -}}
{{- $name := include "quire.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "quire.serviceAccountName" -}}
{{- $own := .Values.serviceAccount.create | ternary (include "quire.fullname" .) "default" -}}
{{- .Values.serviceAccount.name | default $own -}}
{{- end -}}

{{/* Labels that never change while a release lives */}}
{{- define "quire.selectorLabels" -}}
app.kubernetes.io/name: {{ include "quire.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "quire.serverLabels" -}}
{{ include "quire.selectorLabels" . }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "quire.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" (include "quire.name" .)
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/version" (.Values.image.tag | default .Chart.AppVersion | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- merge $own .Values.commonLabels | toYaml -}}
{{- end -}}

{{/* metadata: (dict "root" $ "suffix" "-headless" "labels" {} "annotations" {}) */}}
{{- define "quire.metadata" -}}
{{- $root := .root -}}
{{- $own := include "quire.labels" $root | fromYaml -}}
name: {{ include "quire.fullname" $root }}{{ .suffix }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- merge $own (.labels | default dict) | toYaml | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Images */}}

{{- define "quire.image" -}}
{{- with .Values.global.imageRegistry | default .Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "quire.pullSecrets" -}}
{{- with concat (.Values.global.imagePullSecrets | default list) .Values.image.pullSecrets | uniq -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Security: what "restricted" of the Pod Security Standards asks for */}}

{{- define "quire.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ int64 .Values.podSecurityContext.runAsUser }}
runAsGroup: {{ int64 .Values.podSecurityContext.runAsGroup }}
fsGroup: {{ int64 .Values.podSecurityContext.fsGroup }}
fsGroupChangePolicy: OnRootMismatch
{{- with .Values.podSecurityContext.supplementalGroups }}
supplementalGroups:
  {{- range . }}
  - {{ int64 . }}
  {{- end }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "quire.securityContext" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: {{ .Values.readOnlyRootFilesystem }}
capabilities:
  drop:
    - ALL
{{- end -}}

{{/* Shutdown */}}

{{/* A time of the server ("30s", "500ms", "1.5m") in whole seconds, rounded up */}}
{{- define "quire.seconds" -}}
{{- $text := toString . -}}
{{- if eq $text "0" -}}
0
{{- else -}}
{{- $seconds := dict "ns" 1e-9 "us" 1e-6 "ms" 1e-3 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 -}}
{{- $unit := regexFind "[a-z]+$" $text -}}
{{- mulf (regexFind "^[0-9.]+" $text | float64) (get $seconds $unit) | ceil | int64 -}}
{{- end -}}
{{- end -}}

{{- define "quire.drainSeconds" -}}
{{- $given := index .Values.config "drain-timeout" -}}
{{- kindIs "invalid" $given | ternary "30s" $given | include "quire.seconds" -}}
{{- end -}}

{{/* preStop, then the drain, then ten seconds to end: a pod is never killed in the middle of an answer it may finish */}}
{{- define "quire.leastGraceSeconds" -}}
{{- add .Values.shutdown.preStopSeconds (include "quire.drainSeconds" . | int64) 10 -}}
{{- end -}}

{{- define "quire.graceSeconds" -}}
{{- if kindIs "invalid" .Values.shutdown.terminationGracePeriodSeconds -}}
{{- include "quire.leastGraceSeconds" . -}}
{{- else -}}
{{- int64 .Values.shutdown.terminationGracePeriodSeconds -}}
{{- end -}}
{{- end -}}

{{/* Settings: a TOML file. A JSON string, or a list of them, is one of TOML, too. */}}

{{- define "quire.toml" -}}
{{- $any := contains ":" .Values.config.host | ternary "::" "0.0.0.0" -}}
{{- $own := dict "port" .Values.containerPort "admin-port" .Values.adminPort "admin-host" $any -}}
{{- if ne .Values.model.source "embedded" -}}
{{- $_ := set $own "model" (include "quire.modelPath" (dict "root" . "name" "model")) -}}
{{- end -}}
{{- if ne .Values.draftModel.source "none" -}}
{{- $brought := dict "model" (include "quire.modelPath" (dict "root" . "name" "draft")) -}}
{{- $_ := set $own "speculative-config" (index .Values.config "speculative-config" | default "{}" | fromJson | mergeOverwrite $brought | toJson) -}}
{{- end -}}
{{- if include "quire.usesHub" . -}}
{{- $_ := set $own "download-dir" (include "quire.hubHome" .) -}}
{{- end -}}
{{- if .Values.packedCache.enabled -}}
{{- $_ := set $own "packed-cache" "/var/cache/quire" -}}
{{- end -}}
{{- if and .Values.gpu.enabled (not (index .Values.config "device")) -}}
{{- $_ := set $own "device" "cuda" -}}
{{- end -}}
{{- if .Values.auth.existingSecret -}}
{{- $_ := set $own "api-key-file" "/etc/quire-keys/keys" -}}
{{- end -}}
{{- if .Values.tls.existingSecret -}}
{{- $own = merge $own (dict "tls-cert" "/etc/quire-tls/tls.crt" "tls-key" "/etc/quire-tls/tls.key") -}}
{{- end -}}
{{- range $name, $value := merge $own .Values.config -}}
{{- if kindIs "float64" $value }}
{{ $name }} = {{ int64 $value }}
{{- else if not (kindIs "invalid" $value) }}
{{ $name }} = {{ toJson $value }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Kubernetes puts the pod's address into it: the topic by which a router knows whose events they are */}}
{{- define "quire.kvEventsConfig" -}}
{{- $names := index .Values.config "served-model-name" | default "stories" -}}
{{- if kindIs "string" $names -}}
{{- $names = splitList "," $names -}}
{{- end -}}
{{- $config := dict "enable_kv_cache_events" true "publisher" "zmq" "buffer_steps" (int64 .Values.kvEvents.bufferSteps) "format" .Values.kvEvents.format -}}
{{- $_ := set $config "endpoint" (printf "tcp://*:%d" (int64 .Values.kvEvents.port)) -}}
{{- $_ := set $config "replay_endpoint" (printf "tcp://*:%d" (int64 .Values.kvEvents.replayPort)) -}}
{{- $_ := set $config "topic" (printf "kv@$(POD_IP):%d@%s" (int64 .Values.containerPort) (first $names | trim)) -}}
{{- toJson $config -}}
{{- end -}}

{{/* How whoever scrapes shows its key */}}
{{- define "quire.scrapeAuthorization" -}}
{{- with .Values.auth.monitorSecret -}}
{{- if .name -}}
authorization:
  type: Bearer
  credentials:
    name: {{ .name }}
    key: {{ .key }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the server's port speaks; a certificate may also come by config.tls-cert and a volume of one's own */}}
{{- define "quire.scheme" -}}
{{- or .Values.tls.existingSecret (index .Values.config "tls-cert") | empty | ternary "http" "https" -}}
{{- end -}}

{{- define "quire.servicePort" -}}
{{- .Values.service.port | default (include "quire.scheme" . | eq "https" | ternary 443 80) | int64 -}}
{{- end -}}

{{/* Whether something watches the files of Secrets: "true" or nothing */}}
{{- define "quire.reloads" -}}
{{- if and .Values.reload.enabled (or .Values.auth.existingSecret .Values.tls.existingSecret) -}}
true
{{- end -}}
{{- end -}}

{{/* What Prometheus calls this release's pods, whoever scraped them */}}
{{- define "quire.series" -}}
namespace="{{ .Release.Namespace }}",pod=~"{{ include "quire.fullname" . }}-[a-z0-9]+-[a-z0-9]+"
{{- end -}}

{{/* The port that traces go to: the URL's own, or its scheme's; of a URL that stands in the environment, OTLP's. */}}
{{- define "quire.tracesPort" -}}
{{- $url := index .Values.config "otlp-traces-endpoint" | default "http://environment:4318" -}}
{{- $host := (urlParse $url).host -}}
{{- regexFind ":[0-9]+$" $host | trimPrefix ":" | default (hasPrefix "https:" $url | ternary "443" "80") -}}
{{- end }}
