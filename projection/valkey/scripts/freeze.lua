-- Copies all of a room's pages under another incarnation's name, as of one seq, for somebody who reads them all. The copy expires.
-- KEYS: head. ARGV: name of the copy, seconds that it lives.
-- Answers {incarnation, epoch, seq, summary, last ticket, last handle}.
local head = redis.call('HMGET', KEYS[1], 'incarnation', 'epoch', 'seq', 'summary', 't', 'q')
if not head[1] then return false end
local room = string.sub(KEYS[1], 1, -5)
local function copy(key)
	local to = room .. ARGV[1] .. ':' .. key
	if redis.call('COPY', room .. head[1] .. ':' .. key, to) == 1 then redis.call('EXPIRE', to, ARGV[2]) end
end
for p = 0, math.floor(tonumber(head[5]) / 4096) do
	copy('s:' .. p) copy('t:' .. p) copy('l:' .. p) copy('w:' .. p)
end
for p = 0, math.floor(tonumber(head[6]) / 4096) do
	copy('q:' .. p) copy('e:' .. p)
end
copy('c')
return head
