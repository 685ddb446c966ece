-- wrk: post the bodies of a file, one in each line, in turn; eight @ in them become a number that no other call has.
--   wrk ... -s wrk.lua URL -- FILE FIRST-NUMBER
local marker, texts, at, number = "@@@@@@@@", {}, 0, 0

local head = "POST /mutate?timeout=5s HTTP/1.1\r\nHost: %s\r\n" ..
  "Accept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"

function init(args)
  number = tonumber(args[2])
  for body in io.lines(args[1]) do
    local text, pieces, from = string.format(head, wrk.host .. ":" .. wrk.port, #body) .. body, {}, 1
    repeat
      local next = string.find(text, marker, from, true)
      pieces[#pieces + 1] = string.sub(text, from, (next or 0) - 1)
      from = (next or 0) + #marker
    until not next
    texts[#texts + 1] = pieces
  end
end

function request()
  at = at % #texts + 1
  number = (number + 1) % 100000000
  return table.concat(texts[at], string.format("%08d", number))
end

function done(summary, latency, requests)
  local errors, form = summary.errors, '\n{"calls":%d,"failed":%d,"seconds":%f,"p50":%d,"p99":%d,"longest":%d}\n'
  local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format(
    form, summary.requests, failed, summary.duration / 1e6, latency:percentile(50), latency:percentile(99), latency.max))
end
