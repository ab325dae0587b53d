{{/* Where a model or draft model comes from. Each of these takes (dict "root" $ "name" "model"): the volume's name, and the
     directory that it is mounted at. "quire.brought" is the values of it, by the volume's name. */}}

{{- define "quire.brought" -}}
{{- dict "model" .root.Values.model "draft" .root.Values.draftModel | dig .name dict | toYaml -}}
{{- end -}}

{{/* The volume, where the weights are not in the binary. Read-only where the kind of volume can say so. */}}
{{- define "quire.modelVolume" -}}
{{- $from := include "quire.brought" . | fromYaml -}}
{{- if eq $from.source "pvc" -}}
- name: {{ .name }}
  persistentVolumeClaim:
    claimName: {{ $from.pvc.claimName }}
    readOnly: true
{{- else if eq $from.source "image" -}}
- name: {{ .name }}
  image:
    reference: {{ $from.image.reference }}
    pullPolicy: {{ $from.image.pullPolicy }}
{{- else if eq $from.source "initContainer" -}}
- name: {{ .name }}
  {{- include "quire.claimOrEmptyDir" $from.initContainer | nindent 2 }}
{{- else if eq $from.source "hostPath" -}}
- name: {{ .name }}
  hostPath:
    path: {{ $from.hostPath.path }}
    type: Directory
{{- end -}}
{{- end -}}

{{/* Its mount in the server */}}
{{- define "quire.modelMount" -}}
{{- $from := include "quire.brought" . | fromYaml -}}
{{- if not (has $from.source (list "embedded" "none" "hub")) -}}
- name: {{ .name }}
  mountPath: {{ include "quire.modelHome" .name }}
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "quire.modelHome" -}}
{{- eq . "model" | ternary "/models" "/draft" -}}
{{- end -}}

{{/* Where the server finds the directory, or the name by which it finds it in the hub's cache */}}
{{- define "quire.modelPath" -}}
{{- $from := include "quire.brought" . | fromYaml -}}
{{- if eq $from.source "hub" -}}
{{- $from.hub.name }}
{{- else -}}
{{- include "quire.modelHome" .name }}{{ with $from.subPath }}/{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* Not empty where a model comes from a hub: one cache for model and draft model */}}
{{- define "quire.usesHub" -}}
{{- if has "hub" (list .Values.model.source .Values.draftModel.source) -}}yes{{- end -}}
{{- end -}}

{{- define "quire.hubHome" -}}/var/cache/huggingface{{- end -}}

{{/* The init container that puts it there */}}
{{- define "quire.modelFetcher" -}}
{{- $from := include "quire.brought" . | fromYaml -}}
{{- if eq $from.source "hub" -}}
{{- $hub := .root.Values.hub -}}
- name: {{ .name }}
  image: {{ include "quire.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: [pull, {{ $from.hub.name | quote }}, --download-dir, {{ include "quire.hubHome" . }}]
  env:
    - name: HOME
      value: /tmp
    {{- with $hub.endpoint }}
    - name: HF_ENDPOINT
      value: {{ . | quote }}
    {{- end }}
    {{- if $hub.tokenSecret.name }}
    - name: HF_TOKEN
      valueFrom:
        secretKeyRef:
          name: {{ $hub.tokenSecret.name }}
          key: {{ $hub.tokenSecret.key }}
    {{- end }}
    {{- with $hub.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $hub.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "quire.securityContext" .root | nindent 4 }}
  volumeMounts:
    - name: hub
      mountPath: {{ include "quire.hubHome" . }}
    - name: tmp
      mountPath: /tmp
{{- else if eq $from.source "initContainer" -}}
- name: {{ .name }}
  image: {{ $from.initContainer.image }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  {{- range $part := list "command" "args" "env" "envFrom" "resources" }}
  {{- with index $from.initContainer $part }}
  {{ $part }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  securityContext:
    {{- include "quire.securityContext" .root | nindent 4 }}
  volumeMounts:
    - name: {{ .name }}
      mountPath: {{ include "quire.modelHome" .name }}
    - name: tmp
      mountPath: /tmp
{{- end -}}
{{- end -}}

{{- define "quire.claimOrEmptyDir" -}}
{{- if .claimName -}}
persistentVolumeClaim:
  claimName: {{ .claimName }}
{{- else -}}
emptyDir:
  sizeLimit: {{ .sizeLimit }}
{{- end -}}
{{- end -}}

{{/* Volumes of the Secrets, and their mounts: the server's, and those of what makes it read them again */}}

{{- define "quire.secretVolumes" -}}
{{- with .Values.auth.existingSecret }}
- name: keys
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items:
      - key: {{ $.Values.auth.secretKey }}
        path: keys
{{- end }}
{{- with .Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items:
      - key: {{ $.Values.tls.certificate }}
        path: tls.crt
      - key: {{ $.Values.tls.key }}
        path: tls.key
{{- end }}
{{- end -}}

{{- define "quire.secretMounts" -}}
{{- if .Values.auth.existingSecret }}
- name: keys
  mountPath: /etc/quire-keys
  readOnly: true
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /etc/quire-tls
  readOnly: true
{{- end }}
{{- end -}}
