{{/* What a schema cannot say. Included by deployment.yaml: a template fails with one sentence that names the values. */}}
{{- define "quire.checks" -}}
{{- $values := .Values -}}
{{- $kube := .Capabilities.KubeVersion.Version -}}

{{- if not (kindIs "invalid" $values.shutdown.terminationGracePeriodSeconds) -}}
{{- if lt (include "quire.graceSeconds" . | int64) (include "quire.leastGraceSeconds" . | int64) -}}
{{- fail (printf "shutdown.terminationGracePeriodSeconds is %s: it must be at least %s, which is shutdown.preStopSeconds (%d) + config.drain-timeout (%s s) + 10" (include "quire.graceSeconds" .) (include "quire.leastGraceSeconds" .) (int64 $values.shutdown.preStopSeconds) (include "quire.drainSeconds" .)) -}}
{{- end -}}
{{- end -}}

{{- $needs := dict "pvc" "claimName" "image" "reference" "initContainer" "image" "hostPath" "path" "hub" "name" -}}
{{- range $value, $from := dict "model" $values.model "draftModel" $values.draftModel -}}
{{- $need := get $needs $from.source -}}
{{- if and $need (not (dig $from.source $need "" $from)) -}}
{{- fail (printf "%s.source is %s: set %s.%s.%s" $value $from.source $value $from.source $need) -}}
{{- end -}}
{{- if and (eq $from.source "hub") $from.subPath -}}
{{- fail (printf "%s.subPath is set and %s.source is hub: a model of a hub has no subPath" $value $value) -}}
{{- end -}}
{{- if and (not $need) $from.subPath -}}
{{- fail (printf "%s.subPath is set and %s.source is %s: set %s.source" $value $value $from.source $value) -}}
{{- end -}}
{{- if and (eq $from.source "image") (semverCompare "<1.31-0" $kube) -}}
{{- fail (printf "%s.source is image: image volumes need Kubernetes 1.31, this is %s" $value $kube) -}}
{{- end -}}
{{- end -}}
{{- $source := $values.model.source -}}
{{- if and (not (has $source (list "embedded" "hub"))) (not (index $values.config "served-model-name")) -}}
{{- fail (printf "model.source is %s: set config.served-model-name to the name that requests use" $source) -}}
{{- end -}}
{{- if ne $values.draftModel.source "none" -}}
{{- $speculation := index $values.config "speculative-config" | default "" | fromJson -}}
{{- if or (not $speculation.method) $speculation.Error -}}
{{- fail (printf "draftModel.source is %s: set config.speculative-config to a method that uses it, as JSON: {\"method\": \"draft_model\"}" $values.draftModel.source) -}}
{{- end -}}
{{- end -}}

{{- $seqs := index $values.config "max-num-seqs" | default 64 -}}
{{- $rows := index $values.config "max-num-batched-tokens" | default 512 -}}
{{- if not (or (kindIs "string" $seqs) (kindIs "string" $rows)) -}}
{{- if lt (int64 $rows) (min (int64 $seqs) 16) -}}
{{- fail (printf "config.max-num-batched-tokens (%d) must not be below config.max-num-seqs (%d), or 16" (int64 $rows) (int64 $seqs)) -}}
{{- end -}}
{{- end -}}
{{- if and $values.auth.existingSecret (index $values.config "api-key-file") -}}
{{- fail "auth.existingSecret sets the server's api-key-file itself: take config.api-key-file out" -}}
{{- end -}}
{{- if index $values.config "api-key" -}}
{{- fail "config.api-key would put keys into a ConfigMap: set auth.existingSecret" -}}
{{- end -}}
{{- range $values.extraArgs -}}
{{- if regexMatch "^--api-key(-file)?(=|$)" . -}}
{{- fail "extraArgs has keys: set auth.existingSecret" -}}
{{- end -}}
{{- end -}}
{{- if and $values.auth.existingSecret (or $values.serviceMonitor.enabled $values.podMonitor.enabled) (not $values.auth.monitorSecret.name) -}}
{{- fail "auth.existingSecret: /metrics needs a key then; set auth.monitorSecret.name to a Secret with one of the role monitor" -}}
{{- end -}}
{{- if and $values.auth.existingSecret $values.tests.enabled (not $values.auth.clientSecret.name) -}}
{{- fail "auth.existingSecret: helm test needs a key then; set auth.clientSecret.name to a Secret with one of the role user, or tests.enabled to false" -}}
{{- end -}}
{{- if and $values.tls.existingSecret (or (index $values.config "tls-cert") (index $values.config "tls-key")) -}}
{{- fail "tls.existingSecret sets the server's tls-cert and tls-key itself: take config.tls-cert and config.tls-key out" -}}
{{- end -}}
{{- if and (eq (include "quire.scheme" .) "https") $values.tests.enabled (not $values.tests.image) -}}
{{- fail "the server speaks TLS, and its image has no TLS client: set tests.image to an image with bash and openssl, or tests.enabled to false" -}}
{{- end -}}
{{- if and $values.networkPolicy.enabled (index $values.config "otlp-traces-endpoint") (not $values.networkPolicy.tracesTo) (not $values.networkPolicy.egress) -}}
{{- fail "networkPolicy.enabled blocks egress, and config.otlp-traces-endpoint is set: set networkPolicy.tracesTo to the peers that receive traces" -}}
{{- end -}}
{{- if eq (int64 $values.adminPort) (int64 $values.containerPort) -}}
{{- fail (printf "adminPort and containerPort are both %d: they must differ" (int64 $values.adminPort)) -}}
{{- end -}}
{{- if $values.kvEvents.enabled -}}
{{- if ne (len (uniq (list (int64 $values.containerPort) (int64 $values.adminPort) (int64 $values.kvEvents.port) (int64 $values.kvEvents.replayPort)))) 4 -}}
{{- fail (printf "containerPort (%d), adminPort (%d), kvEvents.port (%d) and kvEvents.replayPort (%d) must differ" (int64 $values.containerPort) (int64 $values.adminPort) (int64 $values.kvEvents.port) (int64 $values.kvEvents.replayPort)) -}}
{{- end -}}
{{- if index $values.config "kv-events-config" -}}
{{- fail "kvEvents.enabled sets the server's kv-events-config itself: take config.kv-events-config out" -}}
{{- end -}}
{{- end -}}
{{- if and $values.packedCache.enabled (index $values.config "packed-cache") -}}
{{- fail "packedCache.enabled sets the server's packed-cache itself: take config.packed-cache out" -}}
{{- end -}}

{{/* Arguments and environment go before the file: what the chart computes with must stand in the file. */}}
{{- range $values.extraArgs -}}
{{- if regexMatch "^--(admin-host|admin-port|config|drain-timeout|model|packed-cache|port|ssl-certfile|ssl-keyfile|tls-cert|tls-key)(=|$)" . -}}
{{- fail (printf "extraArgs has %s: set adminPort, config.drain-timeout, containerPort, model, packedCache or tls" .) -}}
{{- end -}}
{{- end -}}
{{- range $values.extraEnv -}}
{{- if hasPrefix "QUIRE_" (.name | default "") -}}
{{- fail (printf "extraEnv has %s: set config.%s" .name (.name | trimPrefix "QUIRE_" | lower | replace "_" "-")) -}}
{{- end -}}
{{- end -}}

{{- $scaled := $values.autoscaling -}}
{{- if and $scaled.hpa.enabled $scaled.keda.enabled -}}
{{- fail "autoscaling.hpa and autoscaling.keda are both enabled: choose one" -}}
{{- end -}}
{{- if or $scaled.hpa.enabled $scaled.keda.enabled -}}
{{- if gt (int64 $scaled.minReplicas) (int64 $scaled.maxReplicas) -}}
{{- fail (printf "autoscaling.minReplicas (%d) is above autoscaling.maxReplicas (%d)" (int64 $scaled.minReplicas) (int64 $scaled.maxReplicas)) -}}
{{- end -}}
{{- if and $scaled.hpa.enabled (lt (int64 $scaled.minReplicas) 1) -}}
{{- fail "autoscaling.minReplicas is 0: a HorizontalPodAutoscaler needs 1, KEDA goes to 0" -}}
{{- end -}}
{{- end -}}
{{- if and $scaled.keda.enabled (lt (int64 $scaled.minReplicas) 1) (not $scaled.keda.extraTriggers) -}}
{{- fail "autoscaling.minReplicas is 0: without a pod there is no queue metric; add a trigger that wakes the first one to autoscaling.keda.extraTriggers" -}}
{{- end -}}
{{- if and $scaled.keda.enabled (not $scaled.keda.serverAddress) -}}
{{- fail "autoscaling.keda.enabled: set autoscaling.keda.serverAddress to the URL of Prometheus" -}}
{{- end -}}
{{- if and (ne (toString $values.pdb.minAvailable) "") (ne (toString $values.pdb.maxUnavailable) "") -}}
{{- fail "pdb.minAvailable and pdb.maxUnavailable exclude each other: set one" -}}
{{- end -}}

{{- if and $values.ingress.enabled (not $values.ingress.hosts) -}}
{{- fail "ingress.enabled: set ingress.hosts" -}}
{{- end -}}
{{- if and $values.httpRoute.enabled (not $values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.enabled: set httpRoute.parentRefs to the Gateway" -}}
{{- end -}}
{{- if and $values.inferencePool.enabled (not $values.inferencePool.endpointPicker.name) -}}
{{- fail "inferencePool.enabled: set inferencePool.endpointPicker.name to the Service of the endpoint picker" -}}
{{- end -}}
{{- if and $values.serviceMonitor.enabled $values.podMonitor.enabled -}}
{{- fail "serviceMonitor and podMonitor are both enabled: every pod would be scraped twice" -}}
{{- end -}}
{{- if and $values.service.nodePort (eq $values.service.type "ClusterIP") -}}
{{- fail "service.nodePort is set: set service.type to NodePort or LoadBalancer" -}}
{{- end -}}
{{- end -}}
