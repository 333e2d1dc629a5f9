# What GLRU of WAS (Algorithm 1; 128 lists of 8, threshold 2, probability 1/2) says of a trace in the common form, written anew
# here, and what it would say if writes knew nothing of each other: `zstdcat T | awk -f glru.awk [-v lists=128 -v items=8]`.
#
# If each write goes to chunk i with probability p(i) whatever came before, an item comes in with probability p(i) / 2 a write and
# stays for 2 x lists x items writes that are not found; so a write is found with probability lists x items x sum p(i)^2, for
# small tables ("by chance"). What is found beyond that is temporal locality.
#   hot          writes that are called hot, in percent of those to chunks
#   by chance    the same, by that formula
#   in top 20 %  of the hot ones, those to the most written fifth of the chunks
#   of top 20 %  of the writes to that fifth, those called hot
#   shortcut     writes that got the verdict of the request before, because theirs continues it
BEGIN { FS = ","; if (!lists) lists = 128; if (!items) items = 8; srand(1) }
$1 !~ /^[0-9]+$/ || $3 != "W" { next }
function touch(chunk,   list, at, count) {
  list = chunk % lists
  for (at = 0; at < used[list]; at++) if (lpn[list, at] == chunk) break
  if (at < used[list]) count = counter[list, at] < 15 ? counter[list, at] + 1 : 15
  else if (used[list] < items) { used[list]++; count = 1 }
  else if (rand() < 0.5) { at = items - 1; count = 1 }
  else return 0
  for (; at > 0; at--) { lpn[list, at] = lpn[list, at - 1]; counter[list, at] = counter[list, at - 1] }
  lpn[list, 0] = chunk; counter[list, 0] = count
  return count >= 2
}
{
  follows = NR > 1 && $4 == end; end = $4 + $5
  for (chunk = int($4 / 4096); chunk <= int(($4 + $5 - 1) / 4096); chunk++) {
    if (follows) shortcut++
    else verdict = touch(chunk)
    all++; hot += verdict; written[chunk]++; called[chunk] += verdict
  }
}
END {
  for (chunk in written) { unique++; squares += written[chunk] * written[chunk]; chunks[written[chunk]]++; if (written[chunk] > most) most = written[chunk] }
  left = int(unique / 5)
  for (count = most; count > 0; count--) { limit = count; if (chunks[count] >= left) break; left -= chunks[count] }
  for (chunk in written) if (written[chunk] > limit || (written[chunk] == limit && left-- > 0)) { top += written[chunk]; found += called[chunk] }
  printf "%d writes to %d chunks: hot %.2f %%, by chance %.2f %%; in top 20 %% %.1f %%, of top 20 %% %.2f %%; shortcut %.1f %%\n",
    all, unique, 100 * hot / all, 100 * lists * items * squares / all / all, hot ? 100 * found / hot : 0, top ? 100 * found / top : 0, 100 * shortcut / all
}
