{{/* The volume that holds the model, if it is not in the binary. Read-only where the kind of volume can say so. */}}
{{- define "quire.modelVolume" -}}
{{- $model := .Values.model -}}
{{- if eq $model.source "pvc" -}}
- name: model
  persistentVolumeClaim:
    claimName: {{ $model.pvc.claimName }}
    readOnly: true
{{- else if eq $model.source "image" -}}
- name: model
  image:
    reference: {{ $model.image.reference }}
    pullPolicy: {{ $model.image.pullPolicy }}
{{- else if eq $model.source "initContainer" -}}
- name: model
  {{- include "quire.claimOrEmptyDir" $model.initContainer | nindent 2 }}
{{- else if eq $model.source "hostPath" -}}
- name: model
  hostPath:
    path: {{ $model.hostPath.path }}
    type: Directory
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
