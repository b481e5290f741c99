{{- define "ostler.name" -}}
{{- if contains "ostler" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-ostler" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "ostler.selector" -}}
app.kubernetes.io/name: ostler
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "ostler.labels" -}}
{{ include "ostler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "ostler.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What stands behind server.ID= for a pod, whose name is the argument "pod". */}}
{{- define "ostler.line" -}}
{{- $ports := .root.Values.ports -}}
{{ .pod }}.{{ include "ostler.name" .root }}-headless.{{ .root.Release.Namespace }}.svc:{{ $ports.quorum }}:{{ $ports.election }};{{ $ports.client }}
{{- end }}

{{/* The servers that form the ensemble at first. The id of a server is the number of its pod and one. */}}
{{- define "ostler.servers" -}}
{{- $lines := list -}}
{{- range $n := until (int .Values.initialSize) -}}
{{- $pod := printf "%s-%d" (include "ostler.name" $) $n -}}
{{- $lines = append $lines (printf "server.%d=%s" (add1 $n) (include "ostler.line" (dict "root" $ "pod" $pod))) -}}
{{- end -}}
{{ join " " $lines }}
{{- end }}

{{- define "ostler.security" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "ostler.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
