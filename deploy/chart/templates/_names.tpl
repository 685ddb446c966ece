{{- define "berth.name" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains "berth" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-berth" (.Release.Name | trunc 34 | trimSuffix "-") }}
{{- end -}}
{{- end -}}

{{- define "berth.secretName" -}}
{{ .Values.certificates.secretName | default (printf "%s-certificates" (include "berth.name" .)) }}
{{- end -}}

{{- define "berth.host" -}}
{{ include "berth.name" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "berth.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "berth.selected" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "berth.labels" -}}
{{ include "berth.selected" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: berth
{{- end -}}

{{- /* Labels other than the server's, which the Service, the PodDisruptionBudget and the NetworkPolicy select. */ -}}
{{- define "berth.auditSelected" -}}
app.kubernetes.io/name: berth-audit
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "berth.auditLabels" -}}
{{ include "berth.auditSelected" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: berth
{{- end -}}

{{- define "berth.consoleSelected" -}}
app.kubernetes.io/name: berth-console
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "berth.consoleLabels" -}}
{{ include "berth.consoleSelected" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: berth
{{- end -}}

{{- /* The objects of a file with several documents, as {"objects": [...]}. Takes .text, and .from, the name of the file in an error. */ -}}
{{- define "berth.objects" -}}
{{- $objects := list -}}
{{- range $text := regexSplit "(?m)^---\\s*$" .text -1 -}}
{{- $object := fromYaml $text -}}
{{- if hasKey $object "Error" -}}
{{- fail (printf "%s: is not YAML: %s" $.from $object.Error) -}}
{{- end -}}
{{- if $object.kind -}}
{{- $objects = append $objects $object -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "objects" $objects) -}}
{{- end -}}

{{- /* The webhook configurations, before the values of this release are set, as {"objects": [...]}. */ -}}
{{- define "berth.registered" -}}
{{- $chosen := .Values.registration -}}
{{- $file := printf "files/webhooks%s-claims-%s.yaml" (ternary "-queues" "" $chosen.queues) (lower $chosen.claims) -}}
{{- $from := ternary "registration.manifests" $file (ne $chosen.manifests "") -}}
{{- include "berth.objects" (dict "text" ($chosen.manifests | default (.Files.Get $file)) "from" $from) -}}
{{- end -}}

{{- /* The selector of the namespaces that this release checks. Takes .root, and .selector, that of the original configuration. */ -}}
{{- define "berth.namespaceSelector" -}}
{{- $chosen := .root.Values.registration -}}
{{- $outside := index .selector.matchExpressions 0 -}}
{{- $own := ternary $outside.values (without $outside.values "berth-system") (ne $chosen.manifests "") -}}
{{- $_ := set $outside "values" (concat $own (list .root.Release.Namespace) $chosen.excludedNamespaces | uniq) -}}
{{- $more := $chosen.namespaceSelector -}}
{{- $_ := set .selector "matchExpressions" (concat .selector.matchExpressions ($more.matchExpressions | default list)) -}}
{{- with $more.matchLabels -}}
{{- $_ := set $.selector "matchLabels" . -}}
{{- end -}}
{{- toYaml .selector -}}
{{- end -}}

{{- /* The seconds of a duration with one unit, such as 168h; values.schema.json rejects all other forms. */ -}}
{{- define "berth.seconds" -}}
{{- $units := dict "h" 3600 "m" 60 "s" 1 -}}
{{- mul (regexFind "^[0-9]+" . | int64) (get $units (regexFind "[hms]$" .)) -}}
{{- end -}}
