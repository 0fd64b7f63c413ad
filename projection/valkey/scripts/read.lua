-- Reads the room at a glance, and a ticket ("t") or a handle ("h") with it, as of one seq.
-- KEYS: head. ARGV: "s", "t" or "h", its number, incarnation and seq of the summary that the reader has.
-- Answers {incarnation, epoch, seq, summary ("": the reader has it), handle's word, entry, status, ticket, live record,
-- whether it is passable, passable ones before it in its page, passable ones by page before its page}.
local head = redis.call('HMGET', KEYS[1], 'incarnation', 'epoch', 'seq')
if not head[1] then return false end
local out = {head[1], head[2], head[3], '', '', '', '', '', '', '', '', ''}
if head[1] ~= ARGV[3] or head[3] ~= ARGV[4] then out[4] = redis.call('HGET', KEYS[1], 'summary') end
if ARGV[1] == 's' then return out end

local base = string.sub(KEYS[1], 1, -5) .. head[1] .. ':'
local function cell(column, page, i, width)
	return redis.call('GETRANGE', base .. column .. ':' .. page, i * width, i * width + width - 1)
end
local n = tonumber(ARGV[2])
local i = n % 4096
local page = (n - i) / 4096
if ARGV[1] == 'h' then
	out[5] = cell('q', page, i, 4)
	local a, b, c, d = string.byte(out[5], 1, 4)
	if not d or a >= 128 or a + b + c + d == 0 then
		out[6] = cell('e', page, i, 22)
		return out
	end
	n = ((a * 256 + b) * 256 + c) * 256 + d
	i = n % 4096
	page = (n - i) / 4096
end

out[7] = cell('s', page, i, 1)
local status = string.byte(out[7]) or 0
if status >= 1 and status <= 3 then out[8] = cell('t', page, i, 22) end
if status == 2 or status == 3 then out[9] = cell('l', page, i, 40) end
if status == 1 then
	local line = base .. 'w:' .. page
	out[10] = tostring(redis.call('GETBIT', line, i))
	if i > 0 then out[11] = tostring(redis.call('BITCOUNT', line, 0, i - 1, 'BIT')) end
	if page > 0 then out[12] = redis.call('GETRANGE', base .. 'c', 0, 2 * page - 1) end
end
return out
