{{- /*
Changes an object (first of the list) by a patch (second), as a strategic merge of Kustomize does. Prints nothing.
Maps are merged. So are lists of things with names, each with its namesake. All else is replaced; null takes away.
*/ -}}
{{- define "patch" -}}
  {{- $object := index . 0 -}}
  {{- range $key, $new := index . 1 -}}
    {{- $old := get $object $key -}}
    {{- if kindIs "invalid" $new -}}
      {{- $_ := unset $object $key -}}
    {{- else if and (kindIs "map" $new) (kindIs "map" $old) -}}
      {{- include "patch" (list $old $new) -}}
    {{- else if and (kindIs "slice" $old) (kindIs "slice" $new) (kindIs "map" (first $new)) (dig "name" "" (first $new)) -}}
      {{- range $item := $new -}}
        {{- $added := true -}}
        {{- range $namesake := $old -}}
          {{- if eq $namesake.name $item.name -}}
            {{- include "patch" (list $namesake $item) -}}
            {{- $added = false -}}
          {{- end -}}
        {{- end -}}
        {{- if $added -}}
          {{- $_ := set $object $key (append (get $object $key) $item) -}}
        {{- end -}}
      {{- end -}}
    {{- else -}}
      {{- $_ := set $object $key $new -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
