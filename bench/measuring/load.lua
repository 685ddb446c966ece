-- wrk: the bodies of a file, one in each line, in turn; eight @ in them become a number that no other call has.
--   wrk ... -s load.lua URL -- FILE FIRST-NUMBER
local marker, texts, at, number = "@@@@@@@@", {}, 0, 0

local head = "POST /mutate?timeout=5s HTTP/1.1\r\nHost: %s\r\n" ..
  "Accept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"

function init(args)
  number = tonumber(args[2])
  for body in io.lines(args[1]) do
    local text = string.format(head, wrk.host .. ":" .. wrk.port, #body) .. body
    local pieces, from = {}, 1
    while true do
      local found = string.find(text, marker, from, true)
      pieces[#pieces + 1] = string.sub(text, from, (found or 0) - 1)
      if not found then break end
      from = found + #marker
    end
    texts[#texts + 1] = pieces
  end
end

function request()
  at = at % #texts + 1
  number = (number + 1) % 100000000
  return table.concat(texts[at], string.format("%08d", number))
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"us":%d,"p50":%d,"p90":%d,"p99":%d,"most":%d,"denied":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
