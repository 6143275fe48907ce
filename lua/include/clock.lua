-- now_ms(): Redis TIME in whole milliseconds; a Lua number holds it exactly.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
