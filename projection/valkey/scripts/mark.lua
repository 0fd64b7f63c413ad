-- Marks tickets as seen in a window: merges bitmaps of pages into those that other processes have written.
-- KEYS: the window's set of pages. ARGV: seconds to keep it, then page number and bitmap by turns.
local scratch = KEYS[1] .. ':scratch'
for i = 2, #ARGV, 2 do
	local page = KEYS[1] .. ':' .. ARGV[i]
	redis.call('SET', scratch, ARGV[i + 1])
	redis.call('BITOP', 'OR', page, page, scratch)
	redis.call('EXPIRE', page, ARGV[1])
	redis.call('SADD', KEYS[1], ARGV[i])
end
redis.call('DEL', scratch)
redis.call('EXPIRE', KEYS[1], ARGV[1])
