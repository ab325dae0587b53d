{{/* What a schema cannot say. Included by deployment.yaml: a template fails with one sentence that names the values. */}}
{{- define "quire.checks" -}}
{{- $values := .Values -}}
{{- $kube := .Capabilities.KubeVersion.Version -}}

{{- if not (kindIs "invalid" $values.shutdown.terminationGracePeriodSeconds) -}}
{{- if lt (include "quire.graceSeconds" . | int64) (include "quire.leastGraceSeconds" . | int64) -}}
{{- fail (printf "shutdown.terminationGracePeriodSeconds is %s: it must be at least %s, which is shutdown.preStopSeconds (%d) + config.drain-timeout (%s s) + 10" (include "quire.graceSeconds" .) (include "quire.leastGraceSeconds" .) (int64 $values.shutdown.preStopSeconds) (include "quire.drainSeconds" .)) -}}
{{- end -}}
{{- end -}}

{{- $source := $values.model.source -}}
{{- $needs := dict "embedded" list "pvc" (list "claimName") "image" (list "reference") "initContainer" (list "image") "hostPath" (list "path") -}}
{{- range get $needs $source -}}
{{- if not (index $values.model $source .) -}}
{{- fail (printf "model.source is %s: set model.%s.%s" $source $source .) -}}
{{- end -}}
{{- end -}}
{{- if and (ne $source "embedded") (not (index $values.config "served-model-name")) -}}
{{- fail (printf "model.source is %s: set config.served-model-name to the name that requests use" $source) -}}
{{- end -}}
{{- if and (eq $source "embedded") $values.model.subPath -}}
{{- fail "model.subPath is set and model.source is embedded: set model.source" -}}
{{- end -}}
{{- if and (eq $source "image") (semverCompare "<1.31-0" $kube) -}}
{{- fail (printf "model.source is image: image volumes need Kubernetes 1.31, this is %s" $kube) -}}
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
{{- if eq (int64 $values.adminPort) (int64 $values.containerPort) -}}
{{- fail (printf "adminPort and containerPort are both %d: they must differ" (int64 $values.adminPort)) -}}
{{- end -}}
{{- if and $values.packedCache.enabled (index $values.config "packed-cache") -}}
{{- fail "packedCache.enabled sets the server's packed-cache itself: take config.packed-cache out" -}}
{{- end -}}

{{/* Arguments and environment go before the file: what the chart computes with must stand in the file. */}}
{{- range $values.extraArgs -}}
{{- if regexMatch "^--(admin-host|admin-port|config|drain-timeout|model|packed-cache|port)(=|$)" . -}}
{{- fail (printf "extraArgs has %s: set adminPort, config.drain-timeout, containerPort, model or packedCache" .) -}}
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
{{- fail "autoscaling.minReplicas is 0: no pod tells of a queue then; add a trigger that wakes the first one to autoscaling.keda.extraTriggers" -}}
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
